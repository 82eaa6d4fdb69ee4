"""What is judged, by name, in words (docs/guarantees.md)."""

from typing import Final

PROPERTIES: Final[dict[str, str]] = {
    "S1": "retention: no more copies are gone than faults have destroyed",
    "S2": "chain of custody: every copy that goes has a right to go",
    "S3": "no invention: what comes out was put in, as it was",
    "S4": "ids are given out once, and tell the delivery semantics",
    "S5": "RETRY 0: served at most once, and lost only with a cause",
    "S6": "not before its delay, nor while its queue is paused",
    "S7": "not after its TTL",
    "S8": "an acknowledged job is not queued or served where it is acknowledged",
    "S9": "nor by a node that was told of the ack, or should have been",
    "S10": "queued on one node at a time, while nothing is wrong",
    "S11": "a lease lasts for RETRY, while nothing is wrong",
    "S12": "a machine never raises",
    "S13": "oldest first, while nothing is wrong",
    "S14": "counters never go down, and count all that was and no more",
    "S15": "what a journal was promised to keep comes back",
    "S16": "every copy has the options that ADDJOB asked for",
    "S17": "the state of a node fits together",
    "S18": "a node knows whom it should, and nobody whom it was told to forget",
    "S19": "replies tell what was done, and GETJOB gives what was asked for",
    "L1": "every job is delivered within the bound",
    "L2": "and again, if nobody acknowledges it",
    "L3": "acknowledged jobs are collected within the bound",
    "L4": "nothing outlives its TTL",
    "L5": "a node that is up takes jobs with REPLICATE 1",
    "L6": "after the heal all nodes hear each other",
    "L7": "copies on nodes that are gone for good are made again",
    "L8": "a job is queued when its time has come, and not later",
    "L10": "word of an ack reaches a returning holder at once",
}
