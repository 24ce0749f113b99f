"""What a service is asked while it is looked at."""

import itertools
import threading
import time

from common import http


class Traffic(threading.Thread):
    """A little of everything, over and over; somebody listens to the room, and to a total."""

    def __init__(self, service):
        super().__init__(daemon=True)
        self.url, self.admin = service.public, service.admin
        for stream in ("rooms/lobby/events", "likes/post/events"):
            threading.Thread(target=self.listen, args=[stream], daemon=True).start()

    def listen(self, stream):
        http(f"{self.url}/{stream}", timeout=120)

    def run(self):
        for n in itertools.count():
            self.round(n)
            time.sleep(0.2)

    def round(self, n):
        def post(path, body):
            http(f"{self.url}/{path}", body)

        for user in range(8):
            http(f"{self.url}/likes/post/users/user-{user}-{n % 7}", method="DELETE" if n % 2 else "PUT")
        http(f"{self.url}/likes/post")
        post("batch/likes", b'{"item":"other","user":"ada"}\n{"item":"other"}\n')
        post("counters/views", {"amount": 1, "requestId": f"view-{n}"})
        for seats in (1, 2):
            post(f"workshops/w-{n % 50}/reservations", {"requestId": f"request-{n}", "seats": seats})
        lines = [{"workshop": f"set-{n}", "seats": 1}, {"workshop": f"other-{n}", "seats": 1}]
        post("reservations", {"requestId": f"set-{n}", "lines": lines})
        for step, body in (("join", {}), ("send", {"text": "hello"}), ("leave", {})):
            post(f"rooms/lobby/{step}", {"user": "ada", **body})
        post("workshops/w-1/reservations", b"not JSON")
        http(f"{self.url}/nowhere")
