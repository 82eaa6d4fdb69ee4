-------------------------------- MODULE Job --------------------------------
(* The life of one job over the nodes of a cluster, from ADDJOB until every *)
(* node has forgotten it.                                                   *)
(*                                                                          *)
(* Each node has a record of the job, or none. Nodes exchange messages,     *)
(* which may be late, be lost, or arrive several times: a message that was  *)
(* sent stays in `msgs`, and a node may read it at any later moment. If a   *)
(* node crashes, the messages on their way to it are lost.                  *)
(*                                                                          *)
(* Time is left out: whatever may happen after a while may happen now.      *)
(*                                                                          *)
(* Above an action, `rows:` lists the events of a trace, as kind and cause, *)
(* that show it; `half:` events that are the first part of it; `sends:` and *)
(* `reads:` messages. An action with `after:` follows at once from one of   *)
(* these messages; one with `must:` is taken whenever such a message is     *)
(* read. docs/spec.md says how runs are held against this text.             *)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Node,       \* the nodes
    Retry,      \* TRUE: delivered at least once. FALSE: RETRY 0, at most once
    Keyed,      \* TRUE: the job has a key (UNIQUE)
    Need,       \* how many confirmed copies ADDJOB waits for
    Journal,    \* "none", "always" (appendfsync always) or "late" (everysec)
    MaxServed,  \* bounds of the model: deliveries,
    MaxCrashes, \* crashes,
    MaxCopies,  \* and nodes that hold a copy
    Also        \* the names of optional actions that are explored

VARIABLES
    st,         \* for each node, the state of its record
    holders,    \* for each node, the nodes that may hold a copy, as it knows
    conf,       \* for each node, the nodes that confirmed a copy, or the ack
    grave,      \* nodes with a tombstone: they take no copy of the job
    turn,       \* nodes that have queued it, if RETRY is 0
    msgs,       \* messages that were sent
    down,       \* nodes that have crashed and are not started again
    disk,       \* for each node, what its journal has while it is down
    gone,       \* for each node, the nodes that it was told to forget
    crashes,    \* how many crashes there were
    destroyed,  \* how many copies were destroyed
    added,      \* a client has sent ADDJOB,
    answered,   \* and has the id of the job
    served,     \* how often the job was delivered
    ended,      \* nobody is owed a delivery any more
    done        \* a node has collected the acknowledgement

record == <<st, holders, conf>>
faults == <<down, disk, gone, crashes, destroyed>>
seen   == <<added, answered, served, ended, done>>
vars   == <<record, grave, turn, msgs, faults, seen>>

Live   == {"waits", "active", "queued", "dead"}
States == Live \cup {"absent", "acked", "dummy"}

(* The list names holders, in messages that carry them.                     *)
Msg(t, n, m, l) == [type |-> t, from |-> n, to |-> m, list |-> l]
ToAll(t, n, S, l) == {Msg(t, n, m, l) : m \in S \ {n}}
Sent(t, n, m) == \E x \in msgs : x.type = t /\ x.from = n /\ x.to = m

Becomes(n, s) == st' = [st EXCEPT ![n] = s]

(* A record that begins, or ends (the state is "absent" then).              *)
Reset(n, s, h) ==
    /\ st' = [st EXCEPT ![n] = s]
    /\ holders' = [holders EXCEPT ![n] = h]
    /\ conf' = [conf EXCEPT ![n] = h \cap {n}]

Init ==
    /\ st = [n \in Node |-> "absent"] /\ disk = [n \in Node |-> "absent"]
    /\ holders = [n \in Node |-> {}] /\ conf = [n \in Node |-> {}]
    /\ gone = [n \in Node |-> {}]
    /\ grave = {} /\ turn = {} /\ msgs = {} /\ down = {}
    /\ served = 0 /\ crashes = 0 /\ destroyed = 0
    /\ added = FALSE /\ answered = FALSE /\ ended = FALSE /\ done = FALSE

-----------------------------------------------------------------------------
(* The beginning: a client adds the job, and copies go to other nodes.      *)

(* ADDJOB at node n. The record waits for copies. A node that leaves the    *)
(* cluster, or is short of memory, is not a holder itself.                  *)
(* rows: hold add                                                           *)
Add(n) ==
    /\ ~added /\ added' = TRUE
    /\ Reset(n, "waits", {n}) \/ ("outside" \in Also /\ Reset(n, "waits", {}))
    /\ UNCHANGED <<grave, turn, msgs, faults, answered, served, ended, done>>

(* REPLJOB: a node sends copies, with the list of all holders. Later it may *)
(* do so again, to replace copies that were lost.                           *)
(* sends: repljob                                                           *)
Offer(n, S) ==
    /\ st[n] \in Live
    /\ \/ "repair" \in Also
       \/ st[n] = "waits" /\ holders[n] \subseteq {n} /\ n \notin S
    /\ Cardinality(holders[n] \cup S) = MaxCopies \/ "repair" \in Also
    /\ holders' = [holders EXCEPT ![n] = @ \cup S]
    /\ msgs' = msgs \cup ToAll("REPLJOB", n, S, holders[n] \cup S)
    /\ UNCHANGED <<st, conf, grave, turn, faults, seen>>

(* A node takes the copy, unless it has a tombstone.                        *)
(* rows: hold repljob                                                       *)
(* after: repljob                                                           *)
TakeCopy(n, m) ==
    /\ st[n] = "absent" /\ n \notin grave
    /\ \E x \in msgs :
        /\ x.type = "REPLJOB" /\ x.from = m /\ x.to = n
        /\ Reset(n, "active", x.list \cup {n})
    /\ UNCHANGED <<grave, turn, msgs, faults, seen>>

(* GOTJOB: it confirms the copy.                                            *)
(* sends: gotjob                                                            *)
ConfirmCopy(n, m) ==
    /\ st[n] \in Live /\ Sent("REPLJOB", m, n)
    /\ msgs' = msgs \cup {Msg("GOTJOB", n, m, {})}
    /\ UNCHANGED <<record, grave, turn, faults, seen>>

(* reads: gotjob                                                            *)
CountCopy(n, m) ==
    /\ st[n] = "waits" /\ Sent("GOTJOB", m, n)
    /\ conf' = [conf EXCEPT ![n] = @ \cup {m}]
    /\ holders' = [holders EXCEPT ![n] = @ \cup {m}]
    /\ UNCHANGED <<st, grave, turn, msgs, faults, seen>>

(* Enough copies are confirmed, of which one is here: ADDJOB returns. No    *)
(* event shows this; it is part of the next one.                            *)
Begin(n) ==
    /\ st[n] = "waits" /\ Cardinality(conf[n] \cup {n}) >= Need
    /\ Becomes(n, "active")
    /\ holders' = [holders EXCEPT ![n] = @ \cup {n}]
    /\ answered' = TRUE
    /\ UNCHANGED <<conf, grave, turn, msgs, faults, added, served, ended, done>>

(* Enough copies are confirmed, and this node is no holder.                 *)
(* rows: drop handed-over                                                   *)
HandOver(n) ==
    /\ st[n] = "waits" /\ n \notin holders[n]
    /\ Cardinality(conf[n]) >= Need \/ ended
    /\ Reset(n, "absent", {})
    /\ answered' = TRUE
    /\ UNCHANGED <<grave, turn, msgs, faults, added, served, ended, done>>

(* Too few copies in time: ADDJOB fails, and the copies are removed. A      *)
(* holder that DELJOB does not reach keeps its copy, and may send it to this*)
(* node again: only a job with a key must not return here.                  *)
(* rows: drop add-failed                                                    *)
FailAdd(n) ==
    /\ st[n] = "waits" /\ "fail" \in Also
    /\ Reset(n, "absent", {})
    /\ grave' = grave \cup {n} \/ (~Keyed /\ UNCHANGED grave)
    /\ msgs' = msgs \cup ToAll("DELJOB", n, holders[n], {})
    /\ UNCHANGED <<turn, faults, seen>>

-----------------------------------------------------------------------------
(* The queues: at the node that has queued it, a client may take it.        *)

(* QUEUED tells the other holders, so that they postpone their own turn. A  *)
(* job with RETRY 0 is queued once by each node that gets it.               *)
IntoQueue(n) ==
    /\ st[n] = "active" /\ (Retry \/ n \notin turn)
    /\ Becomes(n, "queued")
    /\ turn' = IF Retry THEN turn ELSE turn \cup {n}
    /\ msgs' = msgs \cup ToAll("QUEUED", n, holders[n], {})
    /\ UNCHANGED <<holders, conf, grave, faults, seen>>

(* The node that added it queues it; or one that is told to, or is given it,*)
(* or whose client asks for it.                                             *)
(* rows: queue first, queue delay-over, queue enqueue-message               *)
(* rows: queue import, queue followed, queue nack, queue release            *)
(* rows: queue enqueue, queue redriven, queue loaded                        *)
Queue(n) == (answered \/ "fail" \in Also) /\ IntoQueue(n)

(* WILLQUEUE: half a second before it queues the job again, a node asks the *)
(* holders that it can reach to object. One that has the job queued, or with*)
(* a worker, does (Remind), and the node waits: here it may wait, or not.   *)
(* sends: willqueue                                                         *)
Warn(n) ==
    /\ st[n] = "active" /\ "requeue" \in Also
    /\ msgs' = msgs \cup ToAll("WILLQUEUE", n, holders[n], {})
    /\ UNCHANGED <<record, grave, turn, faults, seen>>

(* The end of RETRY, of a backoff or of a tie, without an acknowledgement.  *)
(* rows: queue retry, queue backed-off, queue untied, queue unbegun         *)
Requeue(n) ==
    /\ Retry /\ "requeue" \in Also
    /\ IntoQueue(n)

(* Another holder has it queued, too: one of the two takes it out. The ids  *)
(* of the nodes decide which; here either may.                              *)
(* rows: unqueue yield                                                      *)
(* after: queued                                                            *)
Yield(n, m) ==
    /\ st[n] = "queued" /\ Sent("QUEUED", m, n)
    /\ Becomes(n, "active")
    /\ UNCHANGED <<holders, conf, grave, turn, msgs, faults, seen>>

(* GETJOB: a client has the job for the time of RETRY.                      *)
(* rows: serve served                                                       *)
(* half: unqueue served                                                     *)
Serve(n) ==
    /\ st[n] = "queued" /\ served < MaxServed
    /\ Becomes(n, "active")
    /\ served' = served + 1
    /\ msgs' = msgs \cup ToAll("WORKING", n, holders[n], {})
    /\ UNCHANGED <<holders, conf, grave, turn, faults, added, answered, ended, done>>

(* A worker has it: no holder keeps it queued.                              *)
(* rows: unqueue working                                                    *)
(* must: working                                                            *)
StopForWorker(n, m) ==
    /\ st[n] = "queued" /\ (m = n \/ Sent("WORKING", m, n))
    /\ Becomes(n, "active")
    /\ UNCHANGED <<holders, conf, grave, turn, msgs, faults, seen>>

(* A client takes it out of the queue, or lets it wait.                     *)
(* rows: unqueue dequeue, unqueue postponed                                 *)
Dequeue(n) ==
    /\ st[n] = "queued" /\ "dequeue" \in Also
    /\ Becomes(n, "active")
    /\ UNCHANGED <<holders, conf, grave, turn, msgs, faults, seen>>

(* A holder repeats to another one how it stands with the job. JOBSTATE     *)
(* stands for all that it says of a death, an error or a wait.              *)
(* sends: queued, working, jobstate, joberror, postponed                    *)
Remind(n, m, t) ==
    /\ "remind" \in Also
    /\ \/ t = "QUEUED" /\ st[n] = "queued"
       \/ t \in {"WORKING", "JOBSTATE"} /\ st[n] \in Live
    /\ msgs' = msgs \cup {Msg(t, n, m, {})}
    /\ UNCHANGED <<record, grave, turn, faults, seen>>

-----------------------------------------------------------------------------
(* Moving: clients wait at another node.                                    *)

(* YOURJOBS. A job with RETRY 0 leaves the node that gives it; of another   *)
(* one, a copy stays.                                                       *)
(* rows: give given                                                         *)
(* half: unqueue given, drop moved                                          *)
Give(n, m) ==
    /\ "move" \in Also /\ st[n] = "queued" /\ n # m
    /\ msgs' = msgs \cup {Msg("YOURJOBS", n, m, holders[n] \cup {m})}
    /\ \/ /\ Retry
          /\ Becomes(n, "active")
          /\ holders' = [holders EXCEPT ![n] = @ \cup {m}]
          /\ UNCHANGED conf
       \/ ~Retry /\ Reset(n, "absent", {})
    /\ UNCHANGED <<grave, turn, faults, seen>>

(* The copy arrives once, and may be queued at once.                        *)
(* rows: hold yourjobs                                                      *)
(* after: yourjobs                                                          *)
TakeMoved(n, m) ==
    /\ st[n] = "absent" /\ n \notin grave
    /\ \E x \in msgs :
        /\ x.type = "YOURJOBS" /\ x.from = m /\ x.to = n
        /\ Reset(n, "active", x.list \cup {n})
        /\ msgs' = msgs \ {x}
    /\ turn' = turn \ {n}
    /\ UNCHANGED <<grave, faults, seen>>

(* HOLDERS: a node that knows of more holders than others tells them.       *)
(* sends: holders                                                           *)
Share(n) ==
    /\ "move" \in Also /\ st[n] \in Live
    /\ msgs' = msgs \cup ToAll("HOLDERS", n, holders[n], holders[n])
    /\ UNCHANGED <<record, grave, turn, faults, seen>>

(* A holder learns of others: it is told, or the sender shows that it is one*)
(* reads: repljob, yourjobs, holders, queued, working, willqueue            *)
(* reads: jobstate, joberror, postponed                                     *)
Learn(n, m) ==
    /\ st[n] \in Live \cup {"acked"} /\ Also \cap {"move", "repair"} # {}
    /\ \E x \in msgs :
        /\ x.from = m /\ x.to = n
        /\ x.type \in {"REPLJOB", "YOURJOBS", "HOLDERS",
                       "QUEUED", "WORKING", "WILLQUEUE", "JOBSTATE"}
        /\ holders' = [holders EXCEPT ![n] =
                         @ \cup x.list \cup IF x.type = "REPLJOB" THEN {} ELSE {m}]
    /\ UNCHANGED <<st, conf, grave, turn, msgs, faults, seen>>

-----------------------------------------------------------------------------
(* Acknowledging: the record stays until all holders know.                  *)

MayAck == served > 0 \/ "remind" \in Also

(* rows: acked ackjob, acked purge, acked cancel, acked yielded             *)
(* rows: acked replaced                                                     *)
(* half: unqueue acked                                                      *)
Ack(n) ==
    /\ st[n] \in Live /\ MayAck
    /\ Becomes(n, "acked") /\ conf' = [conf EXCEPT ![n] = {}]
    /\ ended' = TRUE
    /\ answered' = (answered \/ st[n] = "waits")
    /\ UNCHANGED <<holders, grave, turn, msgs, faults, added, served, done>>

(* ACKJOB at a node without a record: it makes one that knows no holders.   *)
(* rows: hold dummy                                                         *)
AckUnknown(n) ==
    /\ Retry /\ st[n] = "absent" /\ added /\ MayAck /\ "dummy" \in Also
    /\ Reset(n, "dummy", {})
    /\ ended' = TRUE
    /\ UNCHANGED <<grave, turn, msgs, faults, added, answered, served, done>>

(* SETACK: it asks each holder to confirm; a dummy asks every node. The     *)
(* message names the holders that the sender knows; in the code, it has the *)
(* digest of their list.                                                    *)
(* sends: setack, result                                                    *)
AskHolders(n) ==
    /\ st[n] \in {"acked", "dummy"}
    /\ msgs' = msgs \cup ToAll("SETACK", n, IF st[n] = "acked" THEN holders[n] ELSE Node,
                               holders[n])
    /\ UNCHANGED <<record, grave, turn, faults, seen>>

(* ACKJOB at a node without a record that keeps none, because it leaves the *)
(* cluster: it tells all nodes once.                                        *)
(* sends: setack, result                                                    *)
PassOn(n) ==
    /\ Retry /\ st[n] = "absent" /\ added /\ MayAck /\ "dummy" \in Also
    /\ msgs' = msgs \cup ToAll("SETACK", n, Node, {})
    /\ ended' = TRUE
    /\ UNCHANGED <<record, grave, turn, faults, added, answered, served, done>>

(* A node that knows that the job has ended tells one that does not.        *)
(* sends: setack, result                                                    *)
TellEnded(n, m) ==
    /\ st[n] \in {"absent", "acked", "dummy"} /\ (n \in grave \/ ended)
    /\ "remind" \in Also \/ Sent("REPLJOB", m, n) \/ Sent("YOURJOBS", m, n)
    /\ msgs' = msgs \cup {Msg("SETACK", n, m, IF st[n] = "acked" THEN holders[n] ELSE {})}
    /\ UNCHANGED <<record, grave, turn, faults, seen>>

(* rows: acked setack                                                       *)
(* after: setack, result                                                    *)
(* must: setack, result                                                     *)
(* half: unqueue acked                                                      *)
LearnAck(n, m) ==
    /\ st[n] \in Live /\ Sent("SETACK", m, n)
    /\ Becomes(n, "acked") /\ conf' = [conf EXCEPT ![n] = {}]
    /\ answered' = (answered \/ st[n] = "waits")
    /\ UNCHANGED <<holders, grave, turn, msgs, faults, added, served, ended, done>>

(* A node without the job keeps a tombstone, so that a copy on its way does *)
(* not bring the job back.                                                  *)
(* reads: setack, result, deljob                                            *)
Bury(n, m) ==
    /\ st[n] = "absent" /\ (Sent("SETACK", m, n) \/ Sent("DELJOB", m, n))
    /\ grave' = grave \cup {n}
    /\ UNCHANGED <<record, turn, msgs, faults, seen>>

(* GOTACK: it is known, or unknown, here. A node that knows holders which   *)
(* the sender does not know names them instead, or asks them itself.        *)
(* sends: gotack                                                            *)
ConfirmAck(n, m) ==
    /\ st[n] \in {"acked", "dummy"} \/ n \in grave
    /\ \E x \in msgs :
        /\ x.type = "SETACK" /\ x.from = m /\ x.to = n
        /\ st[n] # "acked" \/ holders[n] \subseteq x.list \/ x.list = {}
    /\ msgs' = msgs \cup {Msg(IF st[n] = "acked" THEN "GOTACK" ELSE "UNKNOWN", n, m, {})}
    /\ UNCHANGED <<record, grave, turn, faults, seen>>

(* ACKHOLDERS: it is known here, with another list of holders.              *)
(* sends: ackholders                                                        *)
ConfirmWithList(n, m) ==
    /\ st[n] = "acked"
    /\ \E x \in msgs :
        /\ x.type = "SETACK" /\ x.from = m /\ x.to = n
        /\ x.list # {} /\ x.list # holders[n]
    /\ msgs' = msgs \cup {Msg("ACKHOLDERS", n, m, holders[n])}
    /\ UNCHANGED <<record, grave, turn, faults, seen>>

(* It counts as GOTACK, and the holders that it names are asked, too.       *)
(* reads: ackholders                                                        *)
CountList(n, m) ==
    /\ st[n] = "acked"
    /\ \E x \in msgs :
        /\ x.type = "ACKHOLDERS" /\ x.from = m /\ x.to = n
        /\ holders' = [holders EXCEPT ![n] = @ \cup x.list \cup {m}]
    /\ conf' = [conf EXCEPT ![n] = @ \cup {m}]
    /\ UNCHANGED <<st, grave, turn, msgs, faults, seen>>

(* reads: gotack                                                            *)
CountAck(n, m) ==
    /\ st[n] \in {"acked", "dummy"}
    /\ Sent("UNKNOWN", m, n) \/ (st[n] = "acked" /\ Sent("GOTACK", m, n))
    /\ conf' = [conf EXCEPT ![n] = @ \cup {m}]
    /\ holders' = [holders EXCEPT ![n] =
                     IF Sent("GOTACK", m, n) THEN @ \cup {m} ELSE @]
    /\ UNCHANGED <<st, grave, turn, msgs, faults, seen>>

(* A dummy is not needed once a holder knows of the acknowledgement.        *)
(* rows: drop dummy-dismissed                                               *)
(* after: gotack                                                            *)
(* must: gotack known                                                       *)
Dismiss(n, m) ==
    /\ st[n] = "dummy" /\ Sent("GOTACK", m, n)
    /\ Reset(n, "absent", {})
    /\ grave' = grave \cup {n}
    /\ UNCHANGED <<turn, msgs, faults, seen>>

AllKnow(n) ==
    (IF st[n] = "dummy" THEN Node ELSE holders[n]) \ (gone[n] \cup {n}) \subseteq conf[n]

(* All holders know: they are told to drop the job, and so does this node.  *)
(* rows: drop collected                                                     *)
Collect(n) ==
    /\ st[n] \in {"acked", "dummy"} /\ AllKnow(n)
    /\ Reset(n, "absent", {})
    /\ grave' = grave \cup {n}
    /\ done' = TRUE
    /\ msgs' = msgs \cup ToAll("DELJOB", n, holders[n], {})
    /\ UNCHANGED <<turn, faults, added, answered, served, ended>>

(* If only two nodes hold it, the one that is asked need not keep it.       *)
(* rows: drop deljob                                                        *)
(* after: setack, result                                                    *)
(* half: unqueue dropped, unqueue acked                                     *)
DropAtOnce(n, m) ==
    /\ st[n] = "acked" /\ holders[n] = {n, m}
    /\ Msg("SETACK", m, n, holders[n]) \in msgs
    /\ Reset(n, "absent", {})
    /\ grave' = grave \cup {n}
    /\ UNCHANGED <<turn, msgs, faults, seen>>

(* DELJOB: it is over, in whatever state.                                   *)
(* rows: drop deljob, drop add-failed                                       *)
(* after: deljob                                                            *)
(* must: deljob                                                             *)
(* half: unqueue dropped                                                    *)
Delete(n, m) ==
    /\ st[n] # "absent" /\ Sent("DELJOB", m, n)
    /\ Reset(n, "absent", {})
    /\ grave' = grave \cup {n}
    /\ UNCHANGED <<turn, msgs, faults, seen>>

-----------------------------------------------------------------------------
(* Other ends, and dead jobs.                                               *)

(* FASTACK: all holders drop the job, and nobody waits for confirmations.   *)
(* rows: drop fastack                                                       *)
(* sends: deljob                                                            *)
(* half: unqueue dropped                                                    *)
FastAck(n) ==
    /\ "fastack" \in Also /\ added
    /\ Reset(n, "absent", {})
    /\ grave' = grave \cup {n}
    /\ msgs' = msgs \cup ToAll("DELJOB", n, Node, {})
    /\ ended' = TRUE
    /\ UNCHANGED <<turn, faults, added, answered, served, done>>

(* Its time to live is over, a client deletes it here, or memory is short.  *)
(* rows: drop expired, drop client-deljob, drop flush, drop evicted         *)
(* half: unqueue dropped                                                    *)
Expire(n) ==
    /\ "expire" \in Also /\ st[n] # "absent"
    /\ Reset(n, "absent", {})
    /\ ended' = TRUE
    /\ UNCHANGED <<grave, turn, msgs, faults, added, answered, served, done>>

(* It is kept, and delivered to nobody until it is redriven. JOBSTATE tells *)
(* the other holders; here each changes by itself.                          *)
(* rows: dead nack-dead, dead jobstate, dead loaded, dead repljob           *)
(* rows: dead yourjobs, dead retry, dead nack, dead untied, dead backed-off *)
(* half: unqueue buried                                                     *)
Die(n) ==
    /\ "dead" \in Also /\ st[n] \in Live
    /\ Becomes(n, "dead")
    /\ UNCHANGED <<holders, conf, grave, turn, msgs, faults, seen>>

(* rows: redrive redriven                                                   *)
Redrive(n) ==
    /\ st[n] = "dead"
    /\ Becomes(n, "active")
    /\ UNCHANGED <<holders, conf, grave, turn, msgs, faults, seen>>

(* Another holder has redriven it. This one may not know that it was dead.  *)
(* rows: redrive jobstate                                                   *)
LearnRedriven(n) ==
    /\ "dead" \in Also /\ st[n] \in Live
    /\ Becomes(n, IF st[n] = "dead" THEN "active" ELSE st[n])
    /\ UNCHANGED <<holders, conf, grave, turn, msgs, faults, seen>>

-----------------------------------------------------------------------------
(* Faults.                                                                  *)

(* A queued job comes back as one that waits for its turn.                  *)
OnDisk(n) ==
    IF Journal = "none" \/ st[n] = "waits" THEN "absent"
    ELSE IF st[n] = "queued" THEN "active" ELSE st[n]

(* Memory is lost, and the messages on their way to the node. Without a     *)
(* journal, so is the copy.                                                 *)
(* rows: crash                                                              *)
Crash(n) ==
    /\ crashes < MaxCrashes /\ crashes' = crashes + 1
    /\ down' = down \cup {n}
    /\ disk' = [disk EXCEPT ![n] = OnDisk(n)]
    /\ destroyed' = IF Journal # "always" /\ st[n] \in Live THEN destroyed + 1 ELSE destroyed
    /\ Becomes(n, "absent") /\ conf' = [conf EXCEPT ![n] = {}]
    /\ grave' = grave \ {n}
    /\ msgs' = {x \in msgs : x.to # n}
    /\ UNCHANGED <<holders, turn, gone, seen>>

(* The node starts with what its journal has. One that is synced late may   *)
(* have lost its end: what it has is any state, and any list of holders,    *)
(* that the record had. A node that was forgotten must not return.          *)
(* rows: start, hold loaded, acked loaded                                   *)
Start(n, s, h) ==
    /\ n \in down /\ down' = down \ {n}
    /\ "return" \in Also \/ \A m \in Node : n \notin gone[m]
    /\ s = disk[n] \/ Journal = "late"
    /\ disk' = [disk EXCEPT ![n] = "absent"]
    /\ Becomes(n, s)
    /\ h = holders[n] \/ Journal = "late"
    /\ holders' = [holders EXCEPT ![n] = IF s = "absent" THEN {} ELSE h]
    /\ UNCHANGED <<conf, grave, turn, msgs, gone, crashes, destroyed, seen>>

(* CLUSTER FORGET: a node that is down for good is not waited for.          *)
(* rows: forget                                                             *)
Forget(n, m) ==
    /\ "forget" \in Also /\ n # m /\ m \in down
    /\ gone' = [gone EXCEPT ![n] = @ \cup {m}]
    /\ UNCHANGED <<record, grave, turn, msgs, down, disk, crashes, destroyed, seen>>

-----------------------------------------------------------------------------
Alone(n) ==
    \/ Add(n) \/ Begin(n) \/ HandOver(n) \/ FailAdd(n)
    \/ Queue(n) \/ Warn(n) \/ Requeue(n) \/ Serve(n) \/ Dequeue(n)
    \/ Share(n) \/ Ack(n) \/ AckUnknown(n) \/ PassOn(n) \/ AskHolders(n) \/ Collect(n)
    \/ FastAck(n) \/ Expire(n) \/ Die(n) \/ Redrive(n) \/ LearnRedriven(n) \/ Crash(n)
    \/ \E S \in SUBSET Node : Offer(n, S)

Paired(n, m) ==
    \/ TakeCopy(n, m) \/ ConfirmCopy(n, m) \/ CountCopy(n, m)
    \/ Yield(n, m) \/ StopForWorker(n, m)
    \/ Remind(n, m, "QUEUED") \/ Remind(n, m, "WORKING") \/ Remind(n, m, "JOBSTATE")
    \/ Give(n, m) \/ TakeMoved(n, m) \/ Learn(n, m)
    \/ TellEnded(n, m) \/ LearnAck(n, m) \/ Bury(n, m) \/ ConfirmAck(n, m)
    \/ ConfirmWithList(n, m) \/ CountList(n, m)
    \/ CountAck(n, m) \/ Dismiss(n, m) \/ DropAtOnce(n, m)
    \/ Delete(n, m) \/ Forget(n, m)

Next ==
    \/ \E n \in Node \ down : Alone(n) \/ \E m \in Node : Paired(n, m)
    \/ \E n \in down : \E s \in States :
        \E h \in IF Journal = "late" THEN SUBSET Node ELSE {holders[n]} : Start(n, s, h)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What is promised.                                                        *)

TypeOK ==
    /\ st \in [Node -> States] /\ disk \in [Node -> States]
    /\ holders \in [Node -> SUBSET Node] /\ conf \in [Node -> SUBSET Node]
    /\ grave \subseteq Node /\ turn \subseteq Node /\ down \subseteq Node
    /\ served \in 0 .. MaxServed

(* A job whose ADDJOB has returned is at a node, or on a disk, until it has *)
(* ended, unless as many copies were destroyed as were confirmed.           *)
NotLost ==
    answered /\ ~ended /\ Retry /\ destroyed < Need =>
        \E n \in Node : st[n] \in Live \/ disk[n] \in Live

(* RETRY 0: never delivered twice.                                          *)
AtMostOnce == ~Retry => served <= 1

(* Once an acknowledgement is collected, no node has the job any more.      *)
GoneEverywhere ==
    done /\ Journal # "late" => \A n \in Node \ down : st[n] \notin Live
=============================================================================
