/**
 * Where everything of a local cluster lies. Names are short because a unix socket path has room
 * for about 107 bytes only.
 */

/** The paths of one cluster directory. */
export interface ClusterLayout {
  readonly dir: string;
  /** What the cluster is like: {@link ClusterConfig}. */
  readonly configFile: string;
  /** Made first and removed last: the directory is a cluster's, and may be removed with all that is in it. */
  readonly markFile: string;
  readonly kubeconfig: string;
  /** The journal of the crossing, unless it is kept elsewhere. */
  readonly journalFile: string;
  /** The API server's data. */
  readonly apiDir: string;
  /** The disk cloud's state: disks and call log. */
  readonly cloudDir: string;
  readonly cloudSocket: string;
  /** Names of the disks' devices, by disk. */
  readonly deviceDir: string;
  /** Flexvolume drivers, for all nodes and the controller manager. */
  readonly flexVolumeDir: string;
  /** Pid files, one a process. */
  readonly runDir: string;
  /** Output of the processes. */
  readonly logDir: string;
  /** Output of the pods' containers. */
  readonly podLogDir: string;
  /** Socket of the driver's controller service. */
  readonly driverSocket: string;
  /** Socket of the user's own driver at this place: `controller` or a node. */
  ownDriverSocket(place: string): string;
  /** State of such a driver, shared by its places. */
  readonly ownDriverDir: string;
  /** The calls that the driver has answered at this place. */
  driverCallsFile(place: string): string;
  /** Gates of `controller-manager` or of a node, by name. */
  gatesFile(name: string): string;
  /** How a node's agent reaches the API server, as that node. */
  nodeKubeconfig(nodeName: string): string;
  /** How a component of the control plane reaches it, as a user of its own. */
  componentKubeconfig(componentName: string): string;
  /** The kubelet root directory of a node. */
  nodeDir(nodeName: string): string;
  /** Socket on which a node answers its API server. */
  nodeSocket(nodeName: string): string;
  /** State of the pods' processes on a node. */
  podStateDir(nodeName: string): string;
  pidFile(processName: string): string;
  logFile(processName: string): string;
}

/** The longest path of a unix socket that every platform takes, in bytes. */
const socketPathBytesMax = 103;

/** The layout below `dir` (absolute, normalised). */
export function clusterLayout(dir: string): ClusterLayout {
  return {
    dir,
    configFile: `${dir}/cluster.json`,
    markFile: `${dir}/.longshore-cluster`,
    kubeconfig: `${dir}/kubeconfig`,
    journalFile: `${dir}/crossing.json`,
    apiDir: `${dir}/api`,
    cloudDir: `${dir}/cloud`,
    cloudSocket: `${dir}/cloud.sock`,
    deviceDir: `${dir}/cloud/devices`,
    flexVolumeDir: `${dir}/flexvolume`,
    runDir: `${dir}/run`,
    logDir: `${dir}/logs`,
    podLogDir: `${dir}/logs/pods`,
    driverSocket: `${dir}/csi.sock`,
    ownDriverSocket: (place) => `${dir}/d/${place}.sock`,
    ownDriverDir: `${dir}/d`,
    driverCallsFile: (place) => `${dir}/driver-calls/${place}.jsonl`,
    gatesFile: (name) => `${dir}/gates/${name}.json`,
    nodeKubeconfig: (nodeName) => `${dir}/kubeconfigs/${nodeName}`,
    // In the directory of the nodes' kubeconfigs; names of nodes do not begin with a dot.
    componentKubeconfig: (componentName) => `${dir}/kubeconfigs/.${componentName}`,
    nodeDir: (nodeName) => `${dir}/n/${nodeName}`,
    nodeSocket: (nodeName) => `${dir}/run/${nodeName}.sock`,
    podStateDir: (nodeName) => `${dir}/p/${nodeName}`,
    pidFile: (processName) => `${dir}/run/${processName}.json`,
    logFile: (processName) => `${dir}/logs/${processName}.log`,
  };
}

/** Why no cluster can live in the directory, or undefined: its longest socket path must fit. */
export function layoutProblem(
  layout: ClusterLayout,
  nodeNames: readonly string[],
  driverName: string,
): string | undefined {
  for (const nodeName of nodeNames) {
    const longest = `${layout.nodeDir(nodeName)}/plugins_registry/${driverName}-reg.sock`;
    const bytes = new TextEncoder().encode(longest).length;
    if (bytes > socketPathBytesMax) {
      return `the socket path ${longest} has ${bytes} bytes, the system allows ${socketPathBytesMax}: choose a shorter \`dir\``;
    }
  }
  return undefined;
}
