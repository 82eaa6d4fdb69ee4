-------------------------------- MODULE Key --------------------------------
(* UNIQUE: of the jobs of a queue that have one key, at most one is live.   *)
(*                                                                          *)
(* Nodes have no leader. An ADDJOB with a key asks all nodes before its job *)
(* exists. Of ADDJOBs that ask at the same time, the one with the smaller   *)
(* creation stamp comes first; here each node has one ADDJOB for the key,   *)
(* and its number is the stamp. The nodes are connected, and none crashes.  *)
(*                                                                          *)
(* Messages may be late, arrive in any order, and arrive several times.     *)
(* Time is left out: whatever may happen after a while may happen now.      *)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Node,    \* the nodes, as numbers
    Keep     \* TRUE: an ended job keeps its key for a while (KEEP)

VARIABLES
    st,      \* for each node, the state of its ADDJOB, and then of its job
    free,    \* for each node, those that have answered that the key is free
    round,   \* for each node, by asked node: which question it has asked last
    yielded, \* for each node, the earlier ADDJOBs that it has made way for
    about,   \* for each node, the jobs that it has asked all nodes about
    msgs     \* questions and answers that were sent

vars == <<st, free, round, yielded, about, msgs>>

States == {"none", "asking", "live", "kept", "ended", "refused"}
Words  == {"free", "pending", "taken"}

Ask(n, m, r)       == [type |-> "KEYCLAIM", from |-> n, to |-> m, round |-> r, word |-> ""]
Answer(n, m, r, w) == [type |-> "KEYANSWER", from |-> n, to |-> m, round |-> r, word |-> w]

Init ==
    /\ st = [n \in Node |-> "none"]
    /\ free = [n \in Node |-> {}]
    /\ round = [n \in Node |-> [m \in Node |-> 0]]
    /\ yielded = [n \in Node |-> {}] /\ about = [n \in Node |-> {}]
    /\ msgs = {}

(* ADDJOB with UNIQUE: ask all other nodes.                                 *)
Claim(n) ==
    /\ st[n] = "none"
    /\ st' = [st EXCEPT ![n] = "asking"]
    /\ msgs' = msgs \cup {Ask(n, m, 0) : m \in Node \ {n}}
    /\ UNCHANGED <<free, round, yielded, about>>

(* What node n says of the key to the ADDJOB of node m. An earlier ADDJOB   *)
(* that still asks makes the later one wait.                                *)
Word(n, m) ==
    IF st[n] \in {"live", "kept"} THEN "taken"
    ELSE IF st[n] = "asking" /\ n < m THEN "pending" ELSE "free"

Asked(n, m, x) == x.type = "KEYCLAIM" /\ x.from = m /\ x.to = n

IsNewAndEarlier(n, m) == st[n] = "asking" /\ m < n /\ m \notin yielded[n]

(* A question arrives.                                                      *)
Reply(n, m) ==
    /\ ~IsNewAndEarlier(n, m)
    /\ \E x \in msgs :
        /\ Asked(n, m, x)
        /\ msgs' = msgs \cup {Answer(n, m, x.round, Word(n, m))}
    /\ UNCHANGED <<st, free, round, yielded, about>>

(* It is that of an earlier ADDJOB: what its node has said of the key before*)
(* does not count any more, so that node is asked again.                    *)
MakeWay(n, m) ==
    /\ IsNewAndEarlier(n, m)
    /\ yielded' = [yielded EXCEPT ![n] = @ \cup {m}]
    /\ free' = [free EXCEPT ![n] = @ \ {m}]
    /\ round' = [round EXCEPT ![n][m] = @ + 1]
    /\ \E x \in msgs :
        /\ Asked(n, m, x)
        /\ msgs' = msgs \cup {Answer(n, m, x.round, Word(n, m)), Ask(n, m, round[n][m] + 1)}
    /\ UNCHANGED <<st, about>>

(* The key is free, as far as node m knows. Answers to an earlier question  *)
(* do not count.                                                            *)
Count(n, m) ==
    /\ st[n] = "asking"
    /\ Answer(m, n, round[n][m], "free") \in msgs
    /\ free' = [free EXCEPT ![n] = @ \cup {m}]
    /\ UNCHANGED <<st, round, yielded, about, msgs>>

(* Another job has it, or had it: before ADDJOB returns, all nodes are asked*)
(* whether that job has ended. What they have answered does not count.      *)
Confirm(n, m) ==
    /\ st[n] = "asking" /\ m \notin about[n]
    /\ Answer(m, n, round[n][m], "taken") \in msgs
    /\ about' = [about EXCEPT ![n] = @ \cup {m}]
    /\ free' = [free EXCEPT ![n] = {}]
    /\ round' = [round EXCEPT ![n] = [k \in Node |-> round[n][k] + 1]]
    /\ msgs' = msgs \cup {Ask(n, k, round[n][k] + 1) : k \in Node \ {n}}
    /\ UNCHANGED <<st, yielded>>

(* Another job has it: ADDJOB returns the id of that one.                   *)
Refuse(n, m) ==
    /\ st[n] = "asking"
    /\ Answer(m, n, round[n][m], "taken") \in msgs
    /\ st' = [st EXCEPT ![n] = "refused"]
    /\ UNCHANGED <<free, round, yielded, about, msgs>>

(* All have said that it is free: the job is added.                         *)
Pass(n) ==
    /\ st[n] = "asking" /\ Node \ {n} \subseteq free[n]
    /\ st' = [st EXCEPT ![n] = "live"]
    /\ UNCHANGED <<free, round, yielded, about, msgs>>

(* The job is acknowledged, and its key is free, or kept for a while.       *)
End(n) ==
    /\ st[n] = "live"
    /\ st' = [st EXCEPT ![n] = IF Keep THEN "kept" ELSE "ended"]
    /\ UNCHANGED <<free, round, yielded, about, msgs>>

Release(n) ==
    /\ st[n] = "kept"
    /\ st' = [st EXCEPT ![n] = "ended"]
    /\ UNCHANGED <<free, round, yielded, about, msgs>>

Next ==
    \E n \in Node :
        \/ Claim(n) \/ Pass(n) \/ End(n) \/ Release(n)
        \/ \E m \in Node \ {n} : Reply(n, m) \/ MakeWay(n, m) \/ Count(n, m)
                                 \/ Confirm(n, m) \/ Refuse(n, m)

Spec == Init /\ [][Next]_vars

TypeOK ==
    /\ st \in [Node -> States]
    /\ free \in [Node -> SUBSET Node] /\ yielded \in [Node -> SUBSET Node]
    /\ about \in [Node -> SUBSET Node]

(* At most one job has the key, live or kept.                               *)
OneHolder == Cardinality({n \in Node : st[n] \in {"live", "kept"}}) <= 1
=============================================================================
