/** What a local cluster is like, as it is written into its directory. */

/** A node of the local cluster. */
export interface LocalNode {
  readonly name: string;
  readonly zone: string;
  /** The machine's id at the disk cloud. */
  readonly instanceId: string;
}

/** The configuration of a local cluster. */
export interface ClusterConfig {
  readonly version: 1;
  readonly region: string;
  readonly nodes: readonly LocalNode[];
  readonly driverName: string;
  /** Attach limit of each node. */
  readonly attachLimit: number;
  /** Loop devices and mounts, or directories and links. */
  readonly hostForm: "kernel" | "unprivileged";
  /** Port of the API server on the loopback interface; 0 chooses one. */
  readonly port: number;
  /** Program and arguments of the user's own driver, see `driver-command.ts`; the reference driver when left out. */
  readonly driverCommand?: readonly string[];
  /** Every call that the driver answers is written down, see `driver-calls.ts`. */
  readonly recordsDriverCalls?: true;
  /** The controllers do what Kubernetes 1.20 is recorded to do where ours deliberately differ. */
  readonly compat?: "kubernetes-1.20";
}

const zones = ["us-east-1a", "us-east-1b", "us-east-1c"] as const;

/** Gates before a crossing: the migration of every plugin is off. */
export const initialGates: Readonly<Record<string, boolean>> = { CSIMigration: true, CSIMigrationAWS: false };

/** The configuration of a cluster with so many nodes, spread over three zones. */
export function clusterConfig(
  nodeCount: number,
  hostForm: ClusterConfig["hostForm"],
  options: Partial<
    Pick<
      ClusterConfig,
      "port" | "attachLimit" | "compat" | "driverName" | "driverCommand" | "recordsDriverCalls"
    >
  > = {},
): ClusterConfig {
  return {
    version: 1,
    region: "us-east-1",
    nodes: Array.from({ length: nodeCount }, (_, index) => ({
      name: `node-${index + 1}`,
      zone: zones[index % zones.length] ?? zones[0],
      instanceId: `i-${(index + 1).toString(16).padStart(17, "0")}`,
    })),
    driverName: options.driverName ?? "ebs.csi.aws.com",
    attachLimit: options.attachLimit ?? 39,
    hostForm,
    port: options.port ?? 0,
    ...(options.driverCommand === undefined ? {} : { driverCommand: options.driverCommand }),
    ...(options.recordsDriverCalls === true ? { recordsDriverCalls: true } : {}),
    ...(options.compat === undefined ? {} : { compat: options.compat }),
  };
}
