// The two jobs on Durable Objects with SQLite storage: an object an item, an object a workshop. Every decision is synchronous
// SQL, so nothing comes between its statements; the output gate, as it ships, holds each answer until its writes are stored.
// The worker hands a request to its object as it is: that is faster than a call by RPC.
import { DurableObject } from "cloudflare:workers";

const failure = (status, error) => Response.json({ status, error }, { status });

// What a path names: `/likes/NAME`, `/workshops/NAME/WHAT`.
const parts = (request) => new URL(request.url).pathname.split("/").slice(1);

export class Item extends DurableObject {
  #sql;
  #total;

  constructor(ctx, env) {
    super(ctx, env);
    this.#sql = ctx.storage.sql;
    this.#sql.exec("CREATE TABLE IF NOT EXISTS likes (user TEXT PRIMARY KEY) WITHOUT ROWID");
    this.#sql.exec("CREATE TABLE IF NOT EXISTS totals (id INTEGER PRIMARY KEY, total INTEGER NOT NULL)");
    this.#sql.exec("INSERT OR IGNORE INTO totals VALUES (0, 0)");
    this.#total = this.#sql.exec("SELECT total FROM totals").one().total;
  }

  async fetch(request) {
    const [, item] = parts(request);
    if (request.method === "GET") {
      return Response.json({ item, total: this.#total, exact: true });
    }
    const { userId } = await request.json();
    if (typeof userId !== "string" || userId === "") {
      return failure(400, "invalid_user");
    }
    return Response.json({ item, user: userId, liked: true, changed: this.#like(userId), shard: 0 });
  }

  // Whether the user was new.
  #like(user) {
    const changed = this.#sql.exec("INSERT OR IGNORE INTO likes VALUES (?)", user).rowsWritten > 0;
    if (changed) {
      this.#sql.exec("UPDATE totals SET total = total + 1");
      this.#total += 1;
    }
    return changed;
  }
}

export class Workshop extends DurableObject {
  #sql;
  #capacity;
  #reserved;

  constructor(ctx, env) {
    super(ctx, env);
    this.#sql = ctx.storage.sql;
    this.#sql.exec("CREATE TABLE IF NOT EXISTS workshop (id INTEGER PRIMARY KEY, capacity INTEGER NOT NULL, reserved INTEGER NOT NULL)");
    this.#sql.exec("CREATE TABLE IF NOT EXISTS attempts (request TEXT PRIMARY KEY, seats INTEGER NOT NULL, accepted INTEGER NOT NULL, reserved INTEGER NOT NULL) WITHOUT ROWID");
    this.#sql.exec("INSERT OR IGNORE INTO workshop VALUES (0, ?, 0)", Number(env.CAPACITY));
    const { capacity, reserved } = this.#sql.exec("SELECT capacity, reserved FROM workshop").one();
    this.#capacity = capacity;
    this.#reserved = reserved;
  }

  async fetch(request) {
    const [, workshop, what] = parts(request);
    if (what === "status") {
      return Response.json({ workshop, ...this.#status() });
    }
    const { requestId, seats } = await request.json();
    if (typeof requestId !== "string" || requestId === "" || !Number.isSafeInteger(seats) || seats < 1) {
      return failure(400, "invalid_reservation");
    }
    const decided = this.#reserve(requestId, seats);
    if (decided.seats !== seats) {
      return failure(422, "request_id_reused");
    }
    const { accepted, capacity, reserved, replayed } = decided;
    const status = accepted ? "accepted" : "rejected";
    const reason = accepted ? undefined : "not_enough_seats";
    const answer = { workshop, requestId, seats, status, capacity, reserved, replayed, reason };
    return Response.json(answer, { status: accepted ? 201 : 409 });
  }

  // Takes seats, or repeats what was decided for the id first.
  #reserve(request, seats) {
    const first = this.#sql.exec("SELECT seats, accepted, reserved FROM attempts WHERE request = ?", request).next();
    if (!first.done) {
      const { value } = first;
      return { seats: value.seats, accepted: value.accepted === 1, capacity: this.#capacity, reserved: value.reserved, replayed: true };
    }
    const accepted = this.#reserved + seats <= this.#capacity;
    if (accepted) {
      this.#sql.exec("UPDATE workshop SET reserved = reserved + ?", seats);
      this.#reserved += seats;
    }
    this.#sql.exec("INSERT INTO attempts VALUES (?, ?, ?, ?)", request, seats, accepted ? 1 : 0, this.#reserved);
    return { seats, accepted, capacity: this.#capacity, reserved: this.#reserved, replayed: false };
  }

  #status() {
    const { accepted, rejected } = this.#sql
      .exec("SELECT count(*) FILTER (WHERE accepted = 1) AS accepted, count(*) FILTER (WHERE accepted = 0) AS rejected FROM attempts")
      .one();
    return { capacity: this.#capacity, reserved: this.#reserved, acceptedRequests: accepted, rejectedRequests: rejected };
  }
}

export default {
  async fetch(request, env) {
    const [kind, name, what] = parts(request);
    if (kind === "likes" && name) {
      return env.ITEMS.get(env.ITEMS.idFromName(name)).fetch(request);
    }
    if (kind === "workshops" && (what === "reservations" || what === "status")) {
      return env.WORKSHOPS.get(env.WORKSHOPS.idFromName(name)).fetch(request);
    }
    return kind === "ready" ? Response.json({}) : failure(404, "not_found");
  },
};
