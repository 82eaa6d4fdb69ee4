// What a node does, as words after its name: by the kind of a row, and where that says more by its
// kind and cause. The value is JSON, for Python, too.

export const EVENT_WORDS = {
  "hold": "has a record of {job}",
  "drop": "drops {job}",
  "queue": "queues {job}",
  "unqueue": "takes {job} out of the queue",
  "serve": "serves {job} to {other}",
  "give": "gives {job} to {other}",
  "dead": "has {job} as dead from now on",
  "redrive": "has {job} as redriven from now on",
  "acked": "marks {job} acknowledged",
  "postpone": "lets {job} wait before it is queued again",
  "postpone.release": "snoozes {job}, as its worker asks",
  "queue.snooze-over": "queues {job}: its snooze is over",
  "untie": "ends the lease of {job}: its connection has ended",
  "get.deliver": "has {job} in hand, from {other}"
};
