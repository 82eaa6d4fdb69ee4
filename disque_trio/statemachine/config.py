"""The configuration of a node: every directive with its unit and default (original 2.13).

The record is frozen: CONFIG SET replaces it. `directives` has the name of each field, and how it is
parsed, checked and shown.
"""

import attrs

from disque_trio.statemachine.base import CAPABILITIES, KEEPS_ALL, Millis


@attrs.frozen(kw_only=True)
class Config:
    """One node's configuration. Sizes are bytes; an empty string means "not set"."""

    requirepass: bytes = attrs.field(default=b"", repr=False)
    requirepass_file: str = ""
    """The file of the password; ours alone, as all that follow up to `unixsocket`."""
    cluster_secret: bytes = attrs.field(default=b"", repr=False)
    """The secret with which nodes authenticate each other; several lines while it is being
    changed."""
    cluster_secret_file: str = ""
    protected_mode: bool = True
    """Without a password, accept only clients of this machine."""
    auth_timeout_s: int = 10
    """How long a connection may take for its handshake and its password; 0 is no limit."""
    unauthenticated_clients: int = 1000
    """How many clients of one address may be unauthenticated at the same time."""
    client_query_buffer_limit: int = 1 << 30
    """The maximum size of a client's incomplete request; the node disconnects a client that exceeds
    it."""
    proto_max_bulk_len: int = 512 << 20
    """The maximum size of one argument of a request."""
    tls_port: int = 0
    web_port: int = 0
    """The port for HTTP: health, metrics and console; 0 is none."""
    web_names: tuple[str, ...] = ()
    """Host names that the web port accepts in requests, besides addresses and localhost."""
    web_metrics_open: bool = False
    """Are metrics available without authentication, even if there is a password?"""
    web_tls: bool = False
    """Does the web port speak TLS, with the certificate of `tls_cert_file`?"""
    web_read_only: bool = False
    """Is the console of the web port read-only?"""
    web_reader_password: bytes = attrs.field(default=b"", repr=False)
    """The password for read-only access to the console."""
    web_reader_password_file: str = ""
    web_users: bytes = attrs.field(default=b"", repr=False)
    """Users of the web port, one per line: name, role, hash."""
    web_users_file: str = ""
    web_audit_file: str = ""
    """The file in which operations by people and programs are recorded, in addition to the log."""
    tls_cert_file: str = ""
    tls_key_file: str = ""
    tls_key_file_pass: bytes = attrs.field(default=b"", repr=False)
    tls_ca_cert_file: str = ""
    tls_cluster_ca_cert_file: str = ""
    """The CA for the bus only, for clusters whose clients have certificates of
    `tls_ca_cert_file`."""
    tls_auth_clients: str = "yes"
    """`yes`, `no` or `optional`."""
    tls_cluster: bool = False
    unixsocket: str = ""
    unixsocketperm: int = 0
    logfile: str = ""
    log_format: str = "human"
    """`human` or `json`; ours alone."""
    trace_file: str = ""
    """The file to which the node writes its trace, one row per line; ours alone."""
    trace_file_sample: int = 1
    """The trace file has rows about one in this many jobs. Ours alone, as all that follow up to
    `result_max_bytes`."""
    trace_file_max_bytes: int = 1 << 30
    """The maximum size of the trace file, which is then rotated; 0 is no limit."""
    trace_file_keep: int = 8
    """How many rotated trace files are kept."""
    trace_sample: int = 1024
    """The node keeps the trace of one in this many jobs, for TRACE GET; 0 is none."""
    ended_jobs: int = 100_000
    """How many ended jobs have a record kept; 0 is none."""
    result_max_bytes: int = 1 << 20
    """The maximum size of a job's result."""
    loglevel: str = "notice"
    pidfile: str = "/var/run/disque.pid"
    maxmemory: int = 1 << 30
    maxmemory_samples: int = 5
    maxmemory_policy: str = "acks"
    spill_directory: str = ""
    """The directory to which bodies are spilled; empty disables spilling. Ours alone."""
    timeout_s: int = 0
    """Idle clients are disconnected after more than this many seconds; 0 is never."""
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
    """`framed`, or `disque` for the format of original servers; ours alone."""
    aof_queues: bool = True
    """Does the journal record when a job leaves a queue, so that queues survive a kill? Ours
    alone."""
    syslog_enabled: bool = False
    syslog_ident: str = "disque"
    syslog_facility: str = "local0"
    dir: str = ""
    """The configured working directory; empty means the process's current one."""
    client_output_buffer_limit: tuple[int, int, int] = (0, 0, 0)
    """Class `normal`: hard bytes, soft bytes, soft seconds; 0 is no limit."""
    bind: tuple[str, ...] = ()
    cluster_config_file: str = "nodes.conf"
    renamed_commands: tuple[tuple[str, str], ...] = ()
    """(old, new) pairs in lower case; an empty new name removes the command."""
    default_replicate: int = 3
    """The default REPLICATE of ADDJOB; less if there are fewer nodes. Ours alone."""
    default_sync: int = 0
    """The default SYNC of ADDJOB; 0 is REPLICATE. Ours alone."""
    delivery_lease: bool = True
    """Does a delivery restart the retry period, here and at the other holders? Ours alone."""
    tied_grace: Millis = 2000
    """How long after the end of its connection a job of GETJOB TIED is requeued; ours alone."""
    dead_letter_ttl_s: int = 7 * 86_400
    """How long a dead job is kept; ours alone."""
    bus_send_buffer: int = 32 << 20
    """Bytes queued for one bus link before frames are dropped; ours alone (original, defect 32)."""
    workers: int = 1
    """The number of processes on this machine, each a node of the cluster; ours alone, as all that
    follow."""
    cluster_seeds: tuple[str, ...] = ()
    """Nodes whose cluster this node joins, as `host:port` or `host:port@bus-port`."""
    cluster_announce_ip: str = ""
    """The address or host name at which other nodes and clients reach this node; empty: the address
    at which nodes have reached it."""
    cluster_announce_port: int = 0
    """The announced client port; 0: the port on which the node listens."""
    cluster_announce_bus_port: int = 0
    """The announced bus port; 0: 10000 above the announced client port."""
    node_name: str = ""
    """The name of this node in consoles, commands and logs; empty: the start of its ID is used."""
    cluster_name: str = ""
    """The name of its cluster."""
    replica_zone: str = ""
    """The failure domain of this node, such as a rack: replicas are placed in other zones first."""
    replica_repair_after_s: int = 600
    """How long a holder may be failed before its replicas are re-created; 0 is no limit."""

    @property
    def keeps_extensions(self) -> bool:
        """Can jobs with extensions be kept? The original's journal format has no room for them."""
        return self.aof_format == "framed" or not self.appendonly

    @property
    def records_queues(self) -> bool:
        """Does the journal record when a job leaves a queue? Not in the original's format: an
        original server that used the file in between would omit these records."""
        return self.aof_queues and self.aof_format == "framed"

    @property
    def capabilities(self) -> int:
        """The capabilities that this node announces in PING, PONG and MEET."""
        return CAPABILITIES if self.keeps_extensions else CAPABILITIES & ~KEEPS_ALL

    @property
    def known_port(self) -> int:
        """The client port on which the node listens: for TLS if there is no other."""
        return self.port or self.tls_port
