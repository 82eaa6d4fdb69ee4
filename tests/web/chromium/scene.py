"""A cluster of three nodes, one of which is silent: what each topic of the console says of it."""

import base64
import math
import random
import time
from typing import Any, Final

from tests.web.chromium import story
from tests.web.chromium.fake import Fake, Said

N1, N2, N3 = "127.0.0.1:7711", "127.0.0.1:7712", "127.0.0.1:7713"
NAMES: Final = {N1: "n1", N2: "n2", N3: "n3"}
JOB: Final = "D-5a1f30c2-Zm9vYmFyYmF6cXV4MTIzNDU2-05a1"
FLOW: Final = "D-5a1f30c2-Rmxvd0Zsb3dGbG93MTIzNDU2-05a1"
NASTY: Final = "</script><script>alert(1)</script>"
RIGHT_TO_LEFT: Final = "\u202eזנב \u2066gnp.exe"
LONG: Final = "long-" * 205
BINARY: Final = b"\xff\xfe\x00queue"
TOTAL: Final = 100_000


def now_ms() -> int:
    return int(time.time() * 1000)


def node(address: str, **others: object) -> Said:
    number = int(address[-1])
    return {
        "node": address,
        "id": f"{number}a1f30c2" * 5,
        "name": NAMES[address],
        "state": "up",
        "why": "",
        "jobs": 20_400 + 913 * number,
        "queued": 12_110 + 340 * number,
        "memory": (0.42 + 0.17 * number) * (1 << 30),
        "maxmemory": 1 << 30,
        "clients": 110 + number,
        "waiting": 12 * number,
        "under_replicated": 0,
        "added_s": 405.5,
        "delivered_s": 320.1,
        "acked_s": 318.0,
        "commands_s": 1900.0,
        "version": "1.9.0",
        "uptime_s": 90_000 * number,
        "journal": "ok",
        "clock_ms": number - 2,
        "zone": "east" if number == 1 else "west",
        **others,
    }


def nodes() -> list[Said]:
    silent = node(N3, state="silent", why="no answer for 12 s", journal="off", clock_ms=None)
    return [node(N1), node(N2, clock_ms=620), {**silent, "added_s": None, "delivered_s": None}]


def curve(most: float, seed: str) -> list[int]:
    """Something that goes up and down."""
    rng, at, found = random.Random(seed), 0.7, []
    for n in range(300):
        at += rng.gauss(0, 0.012) + 0.03 * (0.72 + 0.1 * math.sin(n / 40) - at)
        found.append(round(most * min(1.0, max(0.0, at + rng.gauss(0, 0.01)))))
    return found


def series(**names: float) -> Said:
    begin = time.time() - 300
    curves = {name: curve(most, name) for name, most in names.items()}
    return {"at": [begin + n for n in range(300)], **curves}


def overview(_args: Said) -> Said:
    return {
        "findings": [
            {"level": "bad", "text": "n3: no answer for 12 s", "link": "#/cluster"},
            {
                "level": "warn",
                "text": 'queue "mail": 41,209 jobs, the oldest 14 min old; it has no consumers',
                "link": "#/queue/mail",
                "advice": "start workers for these jobs, or purge the queue",
                "operation": "queues purge",
                "args": {"queue": "mail"},
            },
        ],
        "uncounted": [],
        "totals": {
            "queued": 41_377,
            "leased": 214,
            "delayed": 3_802,
            "dead": 1_204,
            "under_replicated": 12,
            "added_s": 811.0,
            "delivered_s": 640.2,
            "again_s": 3.1,
            "acked_s": 636.9,
        },
        "nodes": nodes(),
        "series": series(added_s=811, delivered_s=640, acked_s=600, queued=41_000),
    }


def history(args: Said) -> Said:
    period, many = (300, 288) if args["span"] == "day" else (10, 360)
    now = time.time()
    names = {"added_s": 811, "delivered_s": 640, "acked_s": 600, "queued": 41_000}
    names |= {"again_s": 4, "refused_s": 2, "wait_ms": 900}
    curves = {name: (curve(most, name) * 2)[:many] for name, most in names.items()}
    at = [now - period * (many - n) for n in range(many)]
    holes = {
        name: [None if 100 < n < 130 else v for n, v in enumerate(curves[name])] for name in names
    }
    marks = [
        {"at": now - 1800, "node": N2, "kind": "start", "what": ""},
        {"at": now - 900, "node": N1, "kind": "failed", "what": "n3"},
        {"at": now - 600, "node": N1, "kind": "done", "what": "PURGE"},
        {"at": now - 300, "node": N2, "kind": "late", "what": "2.5s"},
    ]
    return {"period": period, "at": at, **holes, "marks": marks}


def cluster(_args: Said) -> Said:
    sees = [[a, b, "up"] for a in (N1, N2) for b in (N1, N2) if a != b]
    sees += [[N1, N3, "failed"], [N2, N3, "suspect"], [N3, N1, "unknown"], [N3, N2, "unknown"]]
    return {"nodes": nodes(), "sees": sees}


def queue_row(name: str, jobs: int = 0, **others: object) -> Said:
    return {
        "name": name,
        "jobs": jobs,
        "where": {N1: jobs * 3 // 4, N2: jobs - jobs * 3 // 4} if jobs else {},
        "age_s": jobs / 50 if jobs else None,
        "in_s": jobs / 240,
        "out_s": jobs / 250,
        "again_s": None,
        "delayed": 3,
        "leased": 14,
        "dead": 0,
        "takers": 48,
        "served": True,
        "paused": {},
        "limits": None,
        "limited": False,
        **others,
    }


LIMITS: Final = {
    "text": "20 leased, 100 per 60 s, burst 5, loose",
    "concurrency": 20, "rate": 100, "rate_per": 60.0, "burst": 5, "is_loose": True,
    "group_concurrency": 0, "group_rate": 0, "group_rate_per": 0.0, "group_burst": 0,
}  # fmt: skip
FIRST: Final = [
    queue_row("mail", 41_209, takers=0, out_s=0, dead=1_100, paused={N2: "out"}, limits=LIMITS),
    queue_row("sms", 1_204, limits=LIMITS, limited=True),
    queue_row(NASTY, 17),
    queue_row(RIGHT_TO_LEFT, 16),
    queue_row(LONG, 15),
    {
        **queue_row("\\xff\\xfe\\x00queue", 14),
        "name_b64": base64.b64encode(BINARY).decode(),
    },
    queue_row("webhooks/outgoing?x=1#top", 12, paused={N1: "all", N2: "all", N3: "all"}),
]
WORDS: Final = ("billing", "thumbnails", "search-index", "exports", "push", "audit", "cleanup")


def queues(args: Said) -> Said:
    begin = args["page"] * 100
    names = [f"{WORDS[n % 7]}-{n:05}" for n in range(begin, begin + 100)]
    rows = [queue_row(name, max(0, 900 - 7 * (n % 130))) for n, name in enumerate(names)]
    if not begin:
        rows = (FIRST + rows)[:100]
    if args["match"]:
        rows = [row for row in rows if args["match"] in row["name"]]
        return {"total": len(rows), "page": 0, "pages": 1, "rows": rows}
    return {"total": TOTAL, "page": args["page"], "pages": TOTAL // 100, "rows": rows}


def found(n: int, state: str, **others: object) -> Said:
    error = {"kind": "TimeoutError", "message": f"no answer of {n}", "place": "app/mail.py:22"}
    return {
        "id": f"D-77aa00c2-{n:04}vYmFyYmF6cXV4MTIzNDU2-05a1",
        "state": state,
        "queue": "mail",
        "task": "mail.send",
        "key": "",
        "priority": None,
        "attempt": 2,
        "limit": 25,
        "error": {**error, "traceback": "", "at_ms": None} if state != "queued" else None,
        "added_ms": now_ms() - 72_000,
        "due_s": None if state == "dead" else 41,
        "worker": "mailer-7@web3" if state == "running" else "",
        "since_s": 12.0 if state == "running" else None,
        "body": '{"to":"nobody@example.org"}',
        "body_b64": None,
        "bytes": 27,
        **others,
    }


def found_jobs(args: Said) -> Said:
    states = ("running", "backing-off", "delayed", "waiting", "queued", "dead")
    rows = [found(n, states[n % 6]) for n in range(24)]
    rows = [row for row in rows if args.get("state") in (None, row["state"])]
    return {"jobs": rows, "is_cut": not args}


def jobs(count: int, state: str, **others: object) -> list[Said]:
    return [
        {
            "id": f"D-5a1f30c2-{n:04}vYmFyYmF6cXV4MTIzNDU2-05a1",
            "state": state,
            "queue": "mail",
            "added_ms": now_ms() - 840_000 + 9_000 * n,
            "deliveries": n % 3,
            "nacks": n % 2,
            "next_s": None,
            "body": None,
            "body_b64": None,
            **others,
        }
        for n in range(count)
    ]


def queue(args: Said) -> Said:
    name = args.get("name")
    if name == "nowhere":
        return {"queue": None, "oldest": [], "youngest": [], "delayed": [], "series": None}
    row = next((row for row in FIRST if row["name"] == name), queue_row(name or "", 41))
    body = '{"to":"ann@example.org","template":"welcome"}' if args["bodies"] else None
    return {
        "queue": {**row, **({"name_b64": args["name_b64"]} if "name_b64" in args else {})},
        "oldest": jobs(10, "queued", body=body),
        "youngest": jobs(10, "queued", body=body),
        "delayed": jobs(3, "active", next_s=312, body=body),
        "series": series(jobs=41_000, in_s=180, out_s=20),
    }


def job(args: Said) -> Said:
    if args["id"] != JOB:
        return {"id": args["id"], "found": False, "why": "No node that answers has this job."}
    copy: Said = {"lease_s": None, "next_s": None, "deliveries": 1, "nacks": 0}
    copy |= {"holders": ["n1", "n2"], "confirmed": ["n1"]}
    return {
        "id": JOB,
        "found": True,
        "flow": FLOW,
        "summary": found(0, "running", id=JOB),
        "copies": [
            {**copy, "node": N1, "name": "n1", "state": "active", "lease_s": 41, "next_s": 41},
            {**copy, "node": N2, "name": "n2", "state": "active", "next_s": 52},
        ],
        "holders": [
            {
                "node": f"n1 ({N1})",
                "zone": "east",
                "state": "active",
                "why": "it received the ADDJOB",
            },
            {
                "node": f"n2 ({N2})",
                "zone": "west",
                "state": "none",
                "why": "the first in zone west",
            },
        ],
        "zones": {"well": False, "text": "its copy is in zone east"},
        "facts": {
            "queue": "mail",
            "added_ms": now_ms() - 72_000,
            "retry_s": 60,
            "left_s": 86_328,
            "delay_s": 0,
            "replicate": 2,
            "priority": None,
            "task": "mail.send",
            "backoff": 15_000,
            "max-backoff": 600_000,
        },
        "body": '{"to":"ann@example.org","template":"welcome","tries":[1,2]}',
        "body_b64": None,
        "explain": [
            "survives the loss of any one node",
            "redelivered 60 s after its delivery, unless a worker acknowledges it",
            "is gone after 24 h, done or not",
        ],
    }


def job_timeline(args: Said) -> Said:
    id = args["id"]
    return story.told(id, story.rows(id)) if id == JOB else story.untraced(id)


def workers(_args: Said) -> Said:
    worker: dict[str, Any] = {
        "name": "mailer-7@web3",
        "control": "mailer-7@web3.1f30",
        "host": "web3",
        "node": N1,
        "queues": ["mail", "sms"],
        "slots": 5,
        "busy": 4,
        "running": [{"task": "mail.send", "id": JOB, "since_s": 12.0}] * 4,
        "does": "running",
        "beat_s": 0.8,
        "state": "live",
        "taken_s": 31.2,
        "rss": 96 << 20,
    }
    idle = {"busy": 0, "running": [], "taken_s": 0, "rss": 71 << 20}
    client = {"node": N1, "id": 41, "name": "", "address": "10.0.0.9:53012", "idle_s": 2}
    return {
        "workers": [
            worker,
            {
                **worker,
                "name": "mailer-8@web3",
                "control": "8",
                "does": "quiet",
                "busy": 5,
                "state": "late",
                "beat_s": 14.0,
            },
            {
                **worker,
                **idle,
                "name": "thumbs-1@web4",
                "control": "1",
                "queues": ["thumbnails"],
                "slots": 16,
            },
            {
                **worker,
                **idle,
                "name": "old-2@web1",
                "control": "2",
                "state": "gone",
                "beat_s": 312.0,
                "node": "",
            },
        ],
        "clients": [
            {**client, "command": "getjob", "waits_for": None},
            {**client, "id": 43, "name": "checkout", "command": "addjob", "waits_for": None},
        ],
    }


def tasks(_args: Said) -> Said:
    def row(task: str, p50: float, failures: int = 0, **others: object) -> Said:
        times = {"mean_s": p50 * 1.4, "p50_s": p50, "p95_s": p50 * 3, "p99_s": p50 * 9}
        told = {"task": task, "runs": 41_209, "failures": failures, **times}
        return {**told, "running": 4, "longest_s": 1.0, "workers": 2, **others}

    running = {"id": JOB, "task": "mail.send", "queue": "mail", "worker": "mailer-7@web3"}
    return {
        "window_s": 600,
        "tasks": [row("video.cut", 312.0, 12), row("mail.send", 0.0123), row("noop", 0.00002)],
        "running": [
            {**running, "since_s": 1700.0, "lease_s": 41.0},
            {**running, "id": found(3, "running")["id"], "since_s": 0.4, "lease_s": None},
        ],
    }


def member(n: int, task: str, state: str, *after: int, **others: object) -> Said:
    """One that waits for these, of which each follows the one before it."""
    id = "" if state in ("pending", "skipped") else f"D-5a1f30c2-{n:04}YmFyYmF6cXV4MTIzNDU2-05a1"
    ranges = [[after[0], after[-1]]] if after else []
    told = {"task": task, "after": ranges, "steps": 1, "state": state, "id": id}
    return told | {"attempt": 1, "limit": 3, "error": None, "due_s": None, "worker": ""} | others


def flow_members() -> list[Said]:
    """570 members: a film that is cut, in 560 parts of which one is dead, and what follows."""
    error = {"kind": "CodecError", "message": "no frame at 12:07", "place": "film.py:7", "at_ms": 1}
    dead = {"attempt": 3, "error": error}
    found = [member(0, "film.cut", "done"), member(1, "film.sound", "running", 0, 0)]
    found[1] |= {"worker": "mailer-7@web3", "since_s": 12.0}
    for n in range(2, 562):
        state = "done" if n < 300 else "running" if n < 340 else "queued" if n < 560 else "pending"
        found.append(member(n, "film.encode", state, 0, 0))
    found[40] = member(40, "film.encode", "dead", 0, 0, **dead)
    found[41] = member(41, "film.encode", "backing-off", 0, 0, **dead | {"due_s": 40.0})
    found += [member(n, "film.measure", "pending", 2, 561) for n in range(562, 565)]
    found.append(member(565, RIGHT_TO_LEFT, "cancelled", 1, 1))
    found.append(member(566, "film.title", "pending", 0, 1, steps=2))
    found.append(member(567, "film.check", "pending", 562, 566))
    found += [member(n, "film.publish", "pending", 567, 567) for n in (568, 569)]
    return found


def flow(args: Said) -> Said:
    members = flow_members()
    counts: dict[str, int] = {}
    for each in members:
        counts[each["state"]] = counts.get(each["state"], 0) + 1
    now = now_ms()
    told = {"id": args["id"], "found": True, "state": "running", "queue": "film", "size": 570}
    keeper = found(3, "backing-off", id=args["id"], task="disque-trio.flow", due_s=4.0, error=None)
    times = {"added_ms": now - 600_000, "until_ms": now + 80_000_000}
    tasks = list(dict.fromkeys(each["task"] for each in members))
    more = {"tasks": tasks, "counts": counts, "members": members, "coordinator": keeper}
    return {**told, **times, **more}


def flows(_args: Said) -> Said:
    row = {name: each for name, each in flow({"id": FLOW}).items() if name != "members"}
    over = {
        "id": f"{FLOW[:-4]}0001",
        "state": "failed",
        "counts": {"done": 3, "dead": 2},
        "size": 5,
    }
    unasked = {"id": f"{FLOW[:-4]}0002", "state": None, "counts": None}
    return {"flows": [row, {**row, **over}, {**row, **unasked}], "is_cut": False, "unread": 1}


def dead(_args: Said) -> Said:
    def group(queue: str, error: str, count: int, place: str = "app/mail.py:22") -> Said:
        hour = now_ms() - 3_600_000
        seen = {"first_ms": hour, "last_ms": now_ms() - 60_000}
        told = {"queue": queue, "task": "mail.send", "error": error, "place": place}
        return {**told, "message": "no such user", "messages": 12, "count": count, **seen}

    return {
        "total": 1204,
        "seen": 1204,
        "queues": [{"queue": "mail", "dead": 1100}, {"queue": "sms", "dead": 104}],
        "groups": [group("mail", "LookupError", 1100), group("sms", "TimeoutError", 104, "")],
        "more": 0,
    }


def schedule(name: str, task: str, when: str, next_ms: int | None, state: str) -> dict[str, Any]:
    return {
        "schedule": name, "state": state, "name": task, "queue": "mail" if name else "",
        "when": when, "next_ms": next_ms, "workers": 4,
    }  # fmt: skip


def later(_args: Said) -> Said:
    now = now_ms()
    delayed = [
        {
            "id": f"D-99bb00c2-{n:04}vYmFyYmF6cXV4MTIzNDU2-05a1",
            "queue": WORDS[n % 7],
            "state": "backing-off" if n % 9 == 4 else "delayed",
            "due_ms": now + 1000 * int(3600 * (n / 60) ** 1.4) + 20_000,
        }
        for n in range(60)
    ]
    return {
        "delayed": delayed,
        "delayed_total": 3_802,
        "schedules": [
            schedule("weekly", "digest", "0 9 * * 1 UTC", None, "paused"),
            schedule("nightly", "digest", "30 2 * * * UTC", now + 9_000_000, "running"),
            schedule("", "report", "0 8 * * 1-5 Europe/Berlin", now + 7_200_000, "declared"),
            schedule("", "sweep", "every 300 s", now + 140_000, "declared"),
        ],
    }


TOPICS: Final = {
    "overview": overview,
    "history": history,
    "cluster": cluster,
    "queues": queues,
    "queue": queue,
    "jobs": found_jobs,
    "job": job,
    "job-timeline": job_timeline,
    "workers": workers,
    "tasks": tasks,
    "flows": flows,
    "flow": flow,
    "dead": dead,
    "later": later,
}
PLANS: Final = {
    "queues pause": {
        "says": ['deliveries of queue "mail" stop at 3 nodes', "a restart forgets it"],
        "token": "t1",
    },
    "queues purge": {"says": ["41,209 jobs end"], "confirm": "mail", "token": "t2"},
    "nodes kick": {"says": ["the connection of 10.0.0.9:53012 ends"], "token": "t3"},
    "queues redrive": {"says": ["1 of 1,100 dead jobs is enqueued"], "token": "t4"},
    "jobs trace": {
        "says": ["3 nodes record the events of the job, for one hour"],
        "token": "t5",
    },
    "flows retry": {"says": ["enqueued with all their attempts: 1 film.encode"], "token": "t6"},
    "jobs requeue": {"t": "error", "says": "the job is done"},
}


def fake(**others: Any) -> Fake:
    """The server that tells all this."""
    outcome = {"says": [f"{N1}: out", f"{N2}: out"], "failed": [f"{N3}: not reached"]}
    usual: dict[str, Any] = {"topics": TOPICS, "plans": dict(PLANS), "outcome": outcome}
    hello = {"cluster": "prod", "version": "1.9.0"}
    return Fake(**{**usual, "hello": hello, **others})
