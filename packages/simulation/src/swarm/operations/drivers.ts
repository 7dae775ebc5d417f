/** Operations on drivers: all are removed and installed again, one comes back as another version, or a node forgets one. */

import { type CSIDriver, KubeApiError, resources, type Stored } from "@longshore/kube";
import { clusterPlugin, type InProcessCluster } from "@longshore/local";
import { kubeletPaths } from "@longshore/volumes";
import type { Operation, Operators } from "./operators.ts";

/** Controller and nodes of the drivers are shut down in order, with or without their objects, and installed again. */
export const driversRemoved: Operation = (operators, { ms, isOn, happens }) => {
  const { cluster, clock } = operators.env;
  const components = cluster.componentNames.filter((name) => name.startsWith("csi-"));
  const objects = isOn ? cluster.objects(resources.csiDrivers) : [];
  if (!happens(`remove the drivers ${isOn ? "with their objects " : ""}for ${ms} ms`)) return;
  operators.later(0, async () => {
    for (const component of components) await cluster.shutDown(component);
    for (const { metadata } of objects) await removeDriver(operators, metadata.name);
    await clock.sleep(ms, operators.signal);
    const install = async () => {
      for (const object of objects) await installDriver(operators, object);
    };
    await install();
    operators.decided(install);
    for (const component of components) await operators.start(component);
  });
};

/**
 * The drivers of a node go, in order or by a crash, and one of them comes back as another version, whose socket is in a directory of another name: it
 * is registered under the same name. What is mounted stays, and is unmounted through the new socket.
 */
export const driverUpgraded: Operation = (operators, { name, target, ms, isOn, happens }) => {
  const { cluster, clock, crash, moveDriver } = operators.env;
  const node = operators.nodeAt(target);
  const component = `csi-node/${node}`;
  const plugin = operators.pluginAt(target >> 4);
  if (plugin === undefined || !cluster.isRunning(component)) return;
  const driver = clusterPlugin(plugin).driverName;
  const directory = `${driver}-${name.replace(/\D/g, "")}`;
  const how = isOn ? "in order" : "by a crash";
  if (!happens(`${driver} on ${node} goes ${how}, and comes after ${ms} ms in ${directory}`)) return;
  moveDriver(node, driver, directory);
  if (!isOn) {
    crash(component);
    operators.comesBack(ms, component);
    return;
  }
  operators.later(0, async () => {
    await cluster.shutDown(component);
    await clock.sleep(ms, operators.signal);
    await operators.start(component);
  });
};

/** The registration socket of a driver is lost on a node, as by a cleaned directory: the kubelet takes it for removed. */
export const registrationLost: Operation = async (operators, { target, happens }) => {
  const { cluster } = operators.env;
  const node = operators.nodeAt(target);
  const plugin = operators.pluginAt(target >> 4);
  if (plugin === undefined) return;
  const driver = clusterPlugin(plugin).driverName;
  const path = await socketOf(cluster, node, driver);
  if (path !== undefined && happens(`the registration of ${driver} on ${node} is lost`))
    await cluster.hostOf(node).removeFile(path);
};

async function socketOf(
  cluster: InProcessCluster,
  node: string,
  driver: string,
): Promise<string | undefined> {
  const host = cluster.hostOf(node);
  const directory = kubeletPaths.registrationDir(`/n/${node}`);
  const entries = await host.readDirectory(directory);
  const entry = entries?.find((each) => each.startsWith(driver));
  return entry === undefined ? undefined : `${directory}/${entry}`;
}

async function removeDriver({ env, signal }: Operators, name: string): Promise<void> {
  await env.cluster.kube.delete(resources.csiDrivers, { name }, { signal }).catch(unless("NotFound"));
}

async function installDriver(
  { env, signal }: Operators,
  { metadata: { name, labels }, ...object }: Stored<CSIDriver>,
): Promise<void> {
  const made = { ...object, metadata: { name, ...(labels === undefined ? {} : { labels }) } };
  await env.cluster.kube.create(resources.csiDrivers, made, { signal }).catch(unless("AlreadyExists"));
}

function unless(reason: string): (error: unknown) => void {
  return (error) => {
    if (!(error instanceof KubeApiError && error.reason === reason)) throw error;
  };
}
