"""What a caller does with the generated Python client: a like, a hold, a confirmation, and problems by their words.

    python use.py URL [KEY]

Prints one object of JSON: what came back, step by step.
"""

import json
import sys

from headcount_client import AuthenticatedClient, Client
from headcount_client.api.likes import item_total, like
from headcount_client.api.reservations import confirm_reservation, confirm_set, list_reservations, reserve, reserve_set
from headcount_client.api.rooms import send_to_room
from headcount_client.api.workshops import configure_workshop, delete_workshop
from headcount_client.models import (
    BulkProblem, ConfirmBody, ConfirmSetBody, DataMessage, LineBody, Problem, ProblemError, ReservationAnswer, ReservationBody, SetBody,
    TextMessage, WorkshopBody,
)

url, *key = sys.argv[1:]
client = AuthenticatedClient(url, token=key[0]) if key else Client(url)


def done(answer):
    """The answer; a problem is raised with its word."""
    if answer is None or isinstance(answer, Problem):
        raise SystemExit(f"refused: {answer}")
    return answer


liked = done(like.sync("post-1/ü", "ada", client=client, exact=True))
again = done(like.sync("post-1/ü", "ada", client=client, exact=True))
read = done(item_total.sync("post-1/ü", client=client, exact=True))

done(configure_workshop.sync("pottery", client=client, body=WorkshopBody(capacity=2)))
hold = ReservationBody(request_id="ada-1", seats=2, holder="ada", hold=True, ttl_ms=60_000)
held = reserve.sync_detailed("pottery", client=client, body=hold)
replayed = done(reserve.sync("pottery", client=client, body=hold))

full = reserve.sync_detailed("pottery", client=client, body=ReservationBody(request_id="bob-1", seats=1))
assert isinstance(full.parsed, ReservationAnswer), full
reused = reserve.sync_detailed("pottery", client=client, body=ReservationBody(request_id="ada-1", seats=1))
assert isinstance(reused.parsed, Problem) and reused.parsed.error is ProblemError.REQUEST_ID_REUSED, reused

confirmed = done(confirm_reservation.sync("pottery", "ada-1", client=client, body=ConfirmBody()))
page = done(list_reservations.sync("pottery", client=client, limit=10))
# A set that has lost a workshop: a word of its own.
lines = [LineBody(workshop=name, seats=1) for name in ("morning", "afternoon")]
done(reserve_set.sync(client=client, body=SetBody(request_id="course-1", hold=True, lines=lines)))
delete_workshop.sync_detailed("morning", client=client)
lost = confirm_set.sync_detailed("course-1", client=client, body=ConfirmSetBody())

hello = done(send_to_room.sync("lobby", client=client, body=TextMessage(user="ada", text="hello")))
thrown = done(send_to_room.sync("lobby", client=client, body=DataMessage(user="ada", data={"dice": [1, 6]})))
# The lines of a bulk answer have a type, though no function reads them.
line = BulkProblem.from_dict({**reused.parsed.to_dict(), "line": 2})

stranger = item_total.sync_detailed("post-1/ü", client=Client(url))

print(json.dumps({
    "likes": [liked.changed, liked.total, again.changed, again.total],
    "total": [read.item, read.total, read.exact],
    "held": [held.status_code, held.parsed.status, held.parsed.state, held.parsed.reserved],
    "replayed": [replayed.status, replayed.replayed, replayed.expires_at == held.parsed.expires_at],
    "refused": [full.status_code, full.parsed.status, full.parsed.reason],
    "mistaken": [reused.status_code, reused.parsed.error, reused.parsed.field],
    "confirmed": [confirmed.request_id, confirmed.seats, confirmed.state],
    "list": [[one.request_id, one.state] for one in page.reservations],
    "lost": [lost.status_code, lost.parsed.error],
    "room": [hello.offset, thrown.offset],
    "line": [line.line, line.error],
    "stranger": [stranger.status_code, stranger.parsed.error if isinstance(stranger.parsed, Problem) else None],
}))
