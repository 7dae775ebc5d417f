/** A disk cloud with three instances in three zones, and callers for it. */
import { setMaxListeners } from "node:events";
import {
  type Clock,
  type Host,
  noMeter,
  type RuntimeEnv,
  SeededRandom,
  silentLogger,
  systemClock,
} from "@longshore/runtime";
import type { CloudCaller, Instance } from "@longshore/volumes";
import { createDiskCloud, type DiskCloudOptions } from "../disk-cloud/disk-cloud.ts";

/** Seams of a test. */
export function testEnv(clock: Clock = systemClock): RuntimeEnv {
  return { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
}

/** Node `node-N` in zone N, counted from 1. */
export function instance(n: number, attachLimit = 39): Instance {
  return {
    instanceId: `i-${n.toString(16).padStart(17, "0")}`,
    nodeName: `node-${n}`,
    zone: `us-east-1${"abc"[n - 1]}`,
    region: "us-east-1",
    attachLimit,
  };
}

/** The in-tree code of the attach/detach controller. */
export const inTree: CloudCaller = { path: "in-tree", component: "attach-detach-controller" };
/** The driver. */
export const csi: CloudCaller = { path: "csi", component: "ebs.csi.aws.com" };

/** A signal that never aborts. */
export const never = new AbortController().signal;
// A call to a cloud that has crashed never ends, and listens on: tests of crashes make many.
setMaxListeners(0, never);
export const gibibyte = 1024n ** 3n;

/** Opens (or opens again) the cloud in `stateDir`. */
export function openCloud(
  host: Host,
  stateDir: string,
  options: Partial<DiskCloudOptions> & { readonly clock?: Clock; readonly env?: RuntimeEnv } = {},
) {
  const { clock, env = testEnv(clock), ...rest } = options;
  return createDiskCloud(
    { ...env, host },
    { stateDir, instances: [instance(1), instance(2), instance(3)], ...rest },
  );
}

/** What to ask for when nothing matters. */
export const aDisk = { name: "pvc-1", zone: "us-east-1a", sizeBytes: gibibyte, type: "gp2", tags: {} };
