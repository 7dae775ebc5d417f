/** Operations on Flexvolume drivers: a machine's is replaced, or removed and installed again. */
import type { SimulatedHost } from "@longshore/runtime";
import { flexDriverDir, flexDriverFile, flexVersions, installFlexDriver } from "../flex-driver.ts";
import type { Operation } from "./operators.ts";

/** Some are missing for so long that what waits for them waits long between two tries. */
const longTimes = 20;

/** The driver of a node, or of the control plane, gets another version in place, or is missing for a while. */
export const flexDriverChanged: Operation = async (operators, { target, ms, isOn, killMs, happens }) => {
  const { cluster, plan } = operators.env;
  if (!plan.volumes.includes("flexvolume")) return;
  const { nodes } = cluster.config;
  const node = nodes[target % (nodes.length + 1)]?.name;
  const host = node === undefined ? cluster.controlPlaneHost : cluster.hostOf(node);
  const where = node ?? "the control plane";
  const version = flexVersions[killMs % flexVersions.length] ?? "mounts";
  if (isOn) {
    if (happens(`the Flexvolume driver of ${where} is replaced by the one that ${version}`))
      await installFlexDriver(host, version);
    return;
  }
  const missingMs = ms % 3 === 0 ? ms * longTimes : ms;
  if (!happens(`the Flexvolume driver of ${where} is missing for ${missingMs} ms`)) return;
  await removeDriver(host, ms % 2 === 0);
  operators.later(missingMs, () => installFlexDriver(host, version));
};

/** The program alone, or all that was installed. */
async function removeDriver(host: SimulatedHost, isAll: boolean): Promise<void> {
  if (isAll) await host.removeTree(flexDriverDir);
  else await host.removeFile(flexDriverFile);
}
