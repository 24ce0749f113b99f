"""What the checks of the kit share: programs from Debian's packages, processes that end with the check, HTTP."""

import atexit
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOLS = ROOT / "target" / "kit"


class Failed(Exception):
    """The check is red, and why."""


def say(text):
    print(text, flush=True)


def need(good, why):
    if not good:
        raise Failed(why)


def run(*command, **options):
    """Its output; red if it fails."""
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    need(done.returncode == 0, f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def until(what, seconds, look):
    """The first answer that is something; red if none comes in time."""
    end = time.monotonic() + seconds
    while not (found := look()):
        need(time.monotonic() < end, f"not within {seconds} s: {what}")
        time.sleep(0.1)
    return found


def scratch():
    """A directory that goes with the check."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="headcount-kit-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def unpacked(package):
    """A package of Debian's, unpacked below target/ and not installed: no service starts, nothing of the system changes."""
    place = TOOLS / package
    if place.is_dir():
        return place
    TOOLS.mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(dir=TOOLS))
    try:
        download = ["apt-get", "-o", "APT::Sandbox::User=root", "download", package]
        if subprocess.run(download, cwd=work, capture_output=True).returncode != 0:
            run(*([] if os.geteuid() == 0 else ["sudo"]), "apt-get", "update")
            run(*download, cwd=work)
        run("dpkg-deb", "-x", *work.glob("*.deb"), work / "root")
        try:
            (work / "root").rename(place)
        except OSError:
            need(place.is_dir(), f"{place} cannot be made")
    finally:
        shutil.rmtree(work)
    return place


def program(name, package):
    """The system's, or the package's."""
    return shutil.which(name) or unpacked(package) / "usr/bin" / name


def installed(name, package):
    """The system's; installed if it is missing."""
    if not shutil.which(name):
        root = [] if os.geteuid() == 0 else ["sudo"]
        run(*root, "apt-get", "update")
        run(*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "--yes", "--no-install-recommends", package)
    return shutil.which(name)


def _end(child):
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def start(*command, **options):
    """A process that does not outlive the check."""
    child = subprocess.Popen([str(part) for part in command], **options)
    atexit.register(_end, child)
    return child


def http(url, body=None, method=None, timeout=10):
    """Status and body; (0, why) without an answer."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {} if body is None else {"content-type": "application/json"}
    request = urllib.request.Request(url, data, headers, method=method or ("GET" if body is None else "POST"))
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


class Service:
    """headcount on free ports of the loopback, its data and its log in `home`."""

    def __init__(self, binary, home, settings, **options):
        self.log_file = home / "headcount.log"
        environment = {
            **os.environ,
            "HEADCOUNT__SERVER__LISTEN": "127.0.0.1:0",
            "HEADCOUNT__SERVER__ADMIN_LISTEN": "127.0.0.1:0",
            **{f"HEADCOUNT__{name.upper().replace('.', '__')}": str(value) for name, value in settings.items()},
            **options.pop("environment", {}),
        }
        command = options.pop("command", [binary, "serve"])
        with self.log_file.open("wb") as log:
            self.process = start(*command, cwd=home, env=environment, stdout=subprocess.PIPE, stderr=log, text=True, **options)
        ready = self.process.stdout.readline()
        found = re.search(r"public API on (http://\S+), operator's page and admin on (http://\S+),", ready)
        need(found, f"the service did not start: {ready}\n{self.log()}")
        self.public, self.admin = found.groups()

    def log(self):
        return "".join(self.log_file.read_text(errors="replace").splitlines(keepends=True)[-20:])


def main(check):
    """Runs a check: exit 0, or 1 with what is wrong."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    began = time.monotonic()
    try:
        check()
    except (Failed, OSError, subprocess.TimeoutExpired) as why:
        print(f"\nFAILED: {why}", file=sys.stderr, flush=True)
        sys.exit(1)
    say(f"all good, {time.monotonic() - began:.0f} s")
