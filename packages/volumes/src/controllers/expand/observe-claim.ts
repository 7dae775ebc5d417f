/** What the expand controller reads before it decides. Source: docs/behaviour/controllers.md Part C. */
import {
  apiTime,
  type Informer,
  type KubeEnv,
  type Pass,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type Stored,
} from "@longshore/kube";
import type { MigratedPluginManager } from "../../csimigration/migrated-plugin-manager.ts";
import type { VolumePluginManager } from "../../framework/volume-plugin-manager.ts";
import { specOfPersistentVolume } from "../../framework/volume-spec.ts";
import { asksForMore, type Expander, type ExpandObservation } from "./decide-expand-step.ts";

/** What the expand controller works with. */
export interface ExpandContext {
  readonly env: KubeEnv;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly plugins: VolumePluginManager;
  readonly migration: MigratedPluginManager;
}

/** Observes a claim, with its volume read live; undefined when the claim asks for nothing. */
export async function observeClaim(
  context: ExpandContext,
  key: string,
  { signal }: Pass,
): Promise<ExpandObservation | undefined> {
  const { env, claims } = context;
  const claim = claims.get(key);
  if (claim === undefined || !asksForMore(claim)) return undefined;
  const name = claim.spec?.volumeName ?? "";
  const volume = await env.kube.get(resources.persistentVolumes, { name }, { signal });
  const now = apiTime(env.clock.now());
  return { claim, volume, expander: expanderOf(context, volume), now };
}

/** Who can expand the volume. Whether it is migrated is asked before any plugin is looked up. */
function expanderOf(
  { migration, plugins }: ExpandContext,
  volume: Stored<PersistentVolume> | undefined,
): Expander {
  if (volume === undefined) return { kind: "none", eventType: "Warning" };
  const spec = specOfPersistentVolume(volume, false);
  if (migration.isMigratable(spec)) {
    const inTreePlugin = migration.inTreePluginOf(spec) ?? "";
    return { kind: "external", inTreePlugin, driver: migration.csiNameOf(inTreePlugin) ?? "" };
  }
  try {
    const plugin = plugins.findExpandablePluginBySpec(spec);
    if (plugin !== undefined) return { kind: "in-tree", plugin };
    // Upstream's controller has no plugin for CSI at all: its look-up fails.
    return { kind: "none", eventType: volume.spec?.csi == null ? "Normal" : "Warning" };
  } catch {
    return { kind: "none", eventType: "Warning" };
  }
}
