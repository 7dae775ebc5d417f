/**
 * Where everything of a local cluster lies. Names are short because a unix socket path has room
 * for about 107 bytes only.
 */

import type { PluginName } from "./plugins.ts";

/** The paths of one cluster directory. */
export interface ClusterLayout {
  readonly dir: string;
  /** What the cluster is like: {@link ClusterConfig}. */
  readonly configFile: string;
  /** Made first and removed last: the directory is a cluster's, and may be removed with all that is in it. */
  readonly markFile: string;
  readonly kubeconfig: string;
  /** The journal of a plugin's crossing, unless it is kept elsewhere. */
  journalFile(plugin: PluginName): string;
  /** The API server's data. */
  readonly apiDir: string;
  /** The disk cloud's state: disks and call log. */
  readonly cloudDir: string;
  readonly cloudSocket: string;
  /** Names of the disks' devices: by disk, or in a directory for each machine. */
  readonly deviceDir: string;
  /** A machine's devices, by their names at the providers. */
  machineDeviceDir(instanceId: string): string;
  /** Flexvolume drivers, for all nodes and the controller manager. */
  readonly flexVolumeDir: string;
  /** Pid files, one a process. */
  readonly runDir: string;
  /** Output of the processes. */
  readonly logDir: string;
  /** Output of the pods' containers. */
  readonly podLogDir: string;
  /** Socket of a driver's controller service. */
  driverSocket(driverName: string): string;
  /** Where these sockets are. */
  readonly driverSocketDir: string;
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
    // That of EBS has the name that the one journal had as long as there was no other plugin.
    journalFile: (plugin) =>
      plugin === "aws-ebs" ? `${dir}/crossing.json` : `${dir}/crossing-${plugin}.json`,
    apiDir: `${dir}/api`,
    cloudDir: `${dir}/cloud`,
    cloudSocket: `${dir}/cloud.sock`,
    deviceDir: `${dir}/cloud/devices`,
    machineDeviceDir: (instanceId) => `${dir}/cloud/devices/${instanceId}`,
    flexVolumeDir: `${dir}/flexvolume`,
    runDir: `${dir}/run`,
    logDir: `${dir}/logs`,
    podLogDir: `${dir}/logs/pods`,
    driverSocket: (driverName) => `${dir}/csi/${driverName}.sock`,
    driverSocketDir: `${dir}/csi`,
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
  driverNames: readonly string[],
): string | undefined {
  const sockets = nodeNames.flatMap((nodeName) =>
    driverNames.map((driverName) => `${layout.nodeDir(nodeName)}/plugins_registry/${driverName}-reg.sock`),
  );
  for (const longest of sockets) {
    const bytes = new TextEncoder().encode(longest).length;
    if (bytes > socketPathBytesMax) {
      return `the socket path ${longest} has ${bytes} bytes, the system allows ${socketPathBytesMax}: choose a shorter \`dir\``;
    }
  }
  return undefined;
}
