/** The flags that the sidecars share (csi-lib-utils `standardflags`, klog, and what several of them have alike). */
import { choice, duration, labels, obsolete, text, toggle, unlimited, whole } from "./flag-table.ts";

/** Flags of all sidecars that talk to a driver. */
export const driverFlags = {
  "csi-address": text("address", "/run/csi/socket", "socket of the CSI driver; else the variable ADDRESS"),
} as const;

/** Flags of all sidecars that talk to Kubernetes. */
export const kubeFlags = {
  kubeconfig: text("path", "", "kubeconfig file; without it the service account of the pod is used"),
  master: text("url", "", "address of the API server, in place of the kubeconfig's"),
  "kube-api-qps": unlimited(
    5,
    "requests a second to the API server; without it the server's own flow control decides",
  ),
  "kube-api-burst": unlimited(10, "requests at once beyond --kube-api-qps"),
} as const;

/** Flags of all sidecars with metrics. */
export const httpFlags = {
  "http-endpoint": text(
    "address",
    "",
    "serve metrics and health there, e.g. :8080; excludes --metrics-address",
  ),
  "metrics-address": text("address", "", "(deprecated) serve metrics there; use --http-endpoint"),
  "metrics-path": text("path", "/metrics", "path of the metrics"),
} as const;

/** Flags of the sidecars that elect a leader. */
export const leaderElectionFlags = {
  "leader-election": toggle(false, "elect a leader among the replicas"),
  "leader-election-namespace": text(
    "namespace",
    "",
    "namespace of the Lease; else POD_NAMESPACE, that of the service account, or default",
  ),
  "leader-election-lease-duration": duration(
    "15s",
    "how long others wait after the last renewal before they take over",
  ),
  "leader-election-renew-deadline": duration("10s", "how long the leader tries to renew before it gives up"),
  "leader-election-retry-period": duration("5s", "pause between attempts"),
  "leader-election-labels": labels("labels of the Lease"),
  "leader-election-identity": text("name", "", "name of this replica; else the host name"),
} as const;

/** Flags of the sidecars with queues. */
export const retryFlags = {
  "retry-interval-start": duration("1s", "first pause after a failure; it doubles with each"),
  "retry-interval-max": duration("5m", "longest pause after failures"),
} as const;

const klogOnly = "of klog; logs go to standard error";

/** Flags of all sidecars: logging, and what every program has. */
export const processFlags = {
  compat: choice(
    ["", "reference"] as const,
    "",
    "reference: its defaults and its behaviour wherever ours are deliberately different",
  ),
  v: whole(0, "verbosity: from 4 on each call is logged"),
  "logging-format": choice(["text", "json"] as const, "text", "form of log lines"),
  "termination-log-path": text("path", "/dev/termination-log", "where the reason of a failure is left"),
  version: toggle(false, "print the version and exit"),
  automaxprocs: obsolete("switch", "there is one thread for all work"),
  logtostderr: obsolete("switch", klogOnly),
  alsologtostderr: obsolete("switch", klogOnly),
  stderrthreshold: obsolete("text", klogOnly),
  log_dir: obsolete("text", klogOnly),
  log_file: obsolete("text", klogOnly),
  log_file_max_size: obsolete("text", klogOnly),
  log_backtrace_at: obsolete("text", klogOnly),
  add_dir_header: obsolete("switch", klogOnly),
  one_output: obsolete("switch", klogOnly),
  skip_headers: obsolete("switch", klogOnly),
  skip_log_headers: obsolete("switch", klogOnly),
  vmodule: obsolete("text", klogOnly),
  "log-flush-frequency": obsolete("text", klogOnly),
  "log-text-split-stream": obsolete("switch", klogOnly),
  "log-text-info-buffer-size": obsolete("text", klogOnly),
  "log-json-split-stream": obsolete("switch", klogOnly),
  "log-json-info-buffer-size": obsolete("text", klogOnly),
} as const;

/** The gate that all of those have that elect a leader. */
export const releaseGate = {
  ReleaseLeaderElectionOnExit: {
    default: false,
    help: "a replica that is stopped releases its lease, so that the next leader need not wait until it expires",
  },
} as const;

/** The gate of snapshots of groups. */
export const groupSnapshotGate = {
  CSIVolumeGroupSnapshot: { default: false, help: "snapshots of groups of volumes" },
} as const;
