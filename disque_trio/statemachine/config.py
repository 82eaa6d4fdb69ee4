"""Every tunable of a node, with its unit and default (original 2.13).

The record is frozen: CONFIG SET puts a new one in its place. How each field is spelled, parsed,
checked and shown is in `directives`.
"""

import attrs

from disque_trio.statemachine.base import CAPABILITIES, KEEPS_ALL, Millis


@attrs.frozen(kw_only=True)
class Config:
    """One node's configuration. Sizes are bytes; an empty string means "not set"."""

    requirepass: bytes = attrs.field(default=b"", repr=False)
    requirepass_file: str = ""
    """Where the password was read from; ours alone, as all that follows up to `unixsocket`."""
    cluster_secret: bytes = attrs.field(default=b"", repr=False)
    """What nodes prove to each other that they know; several lines while it is being changed."""
    cluster_secret_file: str = ""
    protected_mode: bool = True
    """Without a password, serve clients of this machine only."""
    auth_timeout_s: int = 10
    """How long a connection may take for its handshake and its password; 0 is for ever."""
    unauthenticated_clients: int = 1000
    """How many clients of one address may still owe their password."""
    client_query_buffer_limit: int = 1 << 30
    """Bytes of one client's unfinished request beyond which it is cut off."""
    proto_max_bulk_len: int = 512 << 20
    """Bytes of one argument of a request."""
    tls_port: int = 0
    web_port: int = 0
    """For HTTP: health and metrics; 0 is none."""
    web_names: tuple[str, ...] = ()
    """The names by which browsers may ask for it, beside addresses and localhost."""
    web_metrics_open: bool = False
    """Are metrics for everybody, even if there is a password?"""
    web_tls: bool = False
    """Does the web port speak TLS, with the certificate of `tls_cert_file`?"""
    web_read_only: bool = False
    """Does the console of the web port change nothing?"""
    web_reader_password: bytes = attrs.field(default=b"", repr=False)
    """With it people see the console, and change nothing."""
    web_reader_password_file: str = ""
    web_users: bytes = attrs.field(default=b"", repr=False)
    """Users of the web port, a line for each: name, role, hash."""
    web_users_file: str = ""
    web_audit_file: str = ""
    """Where operations that people and programs run are kept; beside the log."""
    tls_cert_file: str = ""
    tls_key_file: str = ""
    tls_key_file_pass: bytes = attrs.field(default=b"", repr=False)
    tls_ca_cert_file: str = ""
    tls_cluster_ca_cert_file: str = ""
    """Of the bus alone, where clients have certificates of `tls_ca_cert_file` too."""
    tls_auth_clients: str = "yes"
    """`yes`, `no` or `optional`."""
    tls_cluster: bool = False
    unixsocket: str = ""
    unixsocketperm: int = 0
    logfile: str = ""
    log_format: str = "human"
    """`human` or `json`; ours alone."""
    trace_file: str = ""
    """Where the node writes what happens to it, a row per line; ours alone."""
    trace_file_sample: int = 1
    """Only rows about one job of so many are written there. Ours alone, as what follows."""
    trace_file_max_bytes: int = 1 << 30
    """The file is rotated before it is larger; 0 is never."""
    trace_file_keep: int = 8
    """How many rotated files are kept."""
    trace_sample: int = 1024
    """One job of so many has its trace kept, to be had by TRACE GET; 0 is none. Ours alone."""
    ended_jobs: int = 100_000
    """How many jobs that have ended are remembered; 0 is none. Ours alone."""
    result_max_bytes: int = 1 << 20
    """How large the result of a job may be. Ours alone."""
    loglevel: str = "notice"
    pidfile: str = "/var/run/disque.pid"
    maxmemory: int = 1 << 30
    maxmemory_samples: int = 5
    maxmemory_policy: str = "acks"
    spill_directory: str = ""
    """Where bodies are spilled; empty is nowhere. Ours alone."""
    timeout_s: int = 0
    """Idle clients are closed after more than this many seconds; 0 is never."""
    auto_aof_rewrite_percentage: int = 100
    auto_aof_rewrite_min_size: int = 64 << 20
    slowlog_log_slower_than_us: int = 10_000
    slowlog_max_len: int = 128
    latency_monitor_threshold: Millis = 0
    port: int = 7711
    tcp_backlog: int = 511
    databases: int = 16
    maxclients: int = 10_000
    watchdog_period: int = 0
    hz: int = 10
    cluster_node_timeout: Millis = 15_000
    tcp_keepalive_s: int = 0
    multiplexing_api: str = "auto"
    """How the driver waits for sockets: `auto`, `epoll`, `kqueue` or `tasks`; ours alone."""
    no_appendfsync_on_rewrite: bool = False
    daemonize: bool = False
    activerehashing: bool = True
    aof_rewrite_incremental_fsync: bool = True
    aof_load_truncated: bool = True
    aof_enqueue_jobs_once: bool = False
    appendfsync: str = "everysec"
    appendonly: bool = False
    appendfilename: str = "disque.aof"
    aof_format: str = "framed"
    """`framed`, or `disque` as original servers write it; ours alone."""
    aof_queues: bool = True
    """Is it recorded when a job leaves a queue, so that queues outlive a kill? Ours alone."""
    syslog_enabled: bool = False
    syslog_ident: str = "disque"
    syslog_facility: str = "local0"
    dir: str = ""
    """The working directory as given; empty means the process's own."""
    client_output_buffer_limit: tuple[int, int, int] = (0, 0, 0)
    """Class `normal`: hard bytes, soft bytes, soft seconds; 0 is no limit."""
    bind: tuple[str, ...] = ()
    cluster_config_file: str = "nodes.conf"
    renamed_commands: tuple[tuple[str, str], ...] = ()
    """(old, new) pairs in lower case; an empty new name removes the command."""
    default_replicate: int = 3
    """REPLICATE of an ADDJOB that gives none, if there are so many nodes; ours alone."""
    default_sync: int = 0
    """SYNC of an ADDJOB that gives none; 0 is REPLICATE. Ours alone."""
    delivery_lease: bool = True
    """A delivery starts the retry period anew, here and at the other holders; ours alone."""
    tied_grace: Millis = 2000
    """How long after its connection has ended a job of GETJOB TIED is queued again; ours alone."""
    dead_letter_ttl_s: int = 7 * 86_400
    """For how long a dead job is kept; ours alone."""
    bus_send_buffer: int = 32 << 20
    """Bytes queued for one bus link before frames are dropped; ours alone (original, defect 32)."""
    workers: int = 1
    """Processes of this machine, each a node of the cluster; ours alone, as is what follows."""
    cluster_seeds: tuple[str, ...] = ()
    """Nodes that this one joins, as `host:port` or `host:port@bus-port`; ours alone."""
    cluster_announce_ip: str = ""
    """The address, or name, where other nodes and clients reach this one; empty: where nodes have
    reached it."""
    cluster_announce_port: int = 0
    """The clients' port there; 0: that which it listens on."""
    cluster_announce_bus_port: int = 0
    """The port for nodes there; 0: 10000 above the clients' port that is announced."""
    node_name: str = ""
    """How people call this node, in consoles, commands and logs; empty: by the start of its id."""
    cluster_name: str = ""
    """The same of its cluster."""
    replica_zone: str = ""
    """What fails together with this node, such as a rack: copies go to other zones first."""
    replica_repair_after_s: int = 600
    """How long a holder may fail before others take its place; 0 is for ever."""

    @property
    def keeps_extensions(self) -> bool:
        """Can jobs with extensions be kept? The original's file has no place for them."""
        return self.aof_format == "framed" or not self.appendonly

    @property
    def records_queues(self) -> bool:
        """Is it recorded when a job leaves a queue? Not in the original's file: a server that had
        it meanwhile would leave no trace there."""
        return self.aof_queues and self.aof_format == "framed"

    @property
    def capabilities(self) -> int:
        """What this node announces in PING, PONG and MEET."""
        return CAPABILITIES if self.keeps_extensions else CAPABILITIES & ~KEEPS_ALL

    @property
    def known_port(self) -> int:
        """The clients' port that other nodes and clients are told of; the bus is 10000 above."""
        return self.port or self.tls_port
