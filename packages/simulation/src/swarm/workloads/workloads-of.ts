/** The workloads of a world, as its plan says. */
import type { VolumeKind } from "../swarm-plan.ts";
import { blockWriters } from "./block-writers.ts";
import { csiInlineWriters } from "./csi-inline-writers.ts";
import { ephemeralWriters } from "./ephemeral-writers.ts";
import { flexWriters } from "./flex-writers.ts";
import { inlineWriters } from "./inline-writers.ts";
import { nativeWriters } from "./native-writers.ts";
import { pluginWriters } from "./plugin-writers.ts";
import type { Workload, WorkloadEnv } from "./workload.ts";

/** What is made for each kind of volumes; undefined where the plugins of the world have none. */
const workloadsByKind: Readonly<Record<VolumeKind, (env: WorkloadEnv) => Workload | undefined>> = {
  block: blockWriters,
  inline: inlineWriters,
  ephemeral: ephemeralWriters,
  native: nativeWriters,
  flexvolume: flexWriters,
  csiInline: csiInlineWriters,
};

/** All that write in the world. */
export function workloadsOf(env: WorkloadEnv): readonly Workload[] {
  const { volumes, plugins } = env.plan;
  const special = volumes.flatMap((kind) => workloadsByKind[kind](env) ?? []);
  return [...plugins.map((plugin) => pluginWriters(env, plugin)), ...special];
}
