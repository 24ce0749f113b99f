# One worker and its two classes of objects, each object a SQLite database in the directory `data`.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "data", disk = (path = "data", writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:8080", http = (), service = "main")],
);

const main :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.js")],
  compatibilityDate = "2026-11-01",
  bindings = [
    (name = "ITEMS", durableObjectNamespace = "Item"),
    (name = "WORKSHOPS", durableObjectNamespace = "Workshop"),
    (name = "CAPACITY", fromEnvironment = "CAPACITY"),
  ],
  durableObjectNamespaces = [
    (className = "Item", uniqueKey = "headcount-items", enableSql = true),
    (className = "Workshop", uniqueKey = "headcount-workshops", enableSql = true),
  ],
  durableObjectStorage = (localDisk = "data"),
);
