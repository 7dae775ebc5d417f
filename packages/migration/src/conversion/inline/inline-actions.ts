/** The writes of a conversion of inline volumes, which fail where an object is not the one that was observed. */
import { isAlreadyExists, type KubeClient, resources } from "@longshore/kube";
import type { ConversionDirection } from "../conversion-types.ts";
import { policyOf } from "../decide-volume-step.ts";
import { workloadResource } from "../observe-volume.ts";
import { formIn } from "./decide-inline-step.ts";
import type {
  InlineJournal,
  InlineObservation,
  InlineStep,
  PlannedTemplate,
  TemplateVolume,
  TemplateWorkload,
} from "./inline-types.ts";

type Action = (
  kube: KubeClient,
  journal: InlineJournal,
  seen: InlineObservation,
  signal: AbortSignal,
) => Promise<void>;

/** The steps that write; the others wait. */
export const inlineActions: { readonly [S in InlineStep]?: Action } = {
  "create volumes": async (kube, { planned }, seen, signal) => {
    for (const [at, { volume }] of planned.volumes.entries()) {
      if (seen.volumes[at] !== undefined) continue;
      await unlessThere(kube.create(resources.persistentVolumes, volume, { signal }));
    }
  },
  "create claims": async (kube, { planned }, seen, signal) => {
    for (const [at, { claim }] of planned.volumes.entries()) {
      if (seen.claims[at] !== undefined) continue;
      await unlessThere(kube.create(resources.persistentVolumeClaims, claim, { signal }));
    }
  },
  "scale down": (kube, { planned }, _seen, signal) => scale(kube, planned, 0, signal),
  "scale up": (kube, { planned }, _seen, signal) => scale(kube, planned, planned.workload.replicas, signal),
  "change template": async (kube, { planned, direction }, { workload }, signal) => {
    if (workload === undefined) return;
    const volumes = turnedVolumes(workload, planned, direction);
    const { uid, resourceVersion } = workload.metadata;
    const body = { metadata: { uid, resourceVersion }, spec: { template: { spec: { volumes } } } };
    await kube.patch(
      workloadResource(planned.workload),
      planned.workload,
      { type: "merge", body },
      { signal },
    );
  },
  "retain volumes": async (kube, _journal, seen, signal) => {
    for (const volume of seen.volumes) {
      if (volume === undefined || policyOf(volume) === "Retain") continue;
      const { name, uid, resourceVersion } = volume.metadata;
      const body = {
        metadata: { uid, resourceVersion },
        spec: { persistentVolumeReclaimPolicy: "Retain" },
      };
      await kube.patch(resources.persistentVolumes, { name }, { type: "merge", body }, { signal });
      // Read back: an admission plugin may have changed what was asked for.
      const stored = await kube.get(resources.persistentVolumes, { name }, { signal });
      if (stored === undefined || policyOf(stored) === "Retain") continue;
      throw new Error(
        `PersistentVolume ${name} (spec.persistentVolumeReclaimPolicy): it is ${policyOf(stored)} although Retain was written; see which webhook or controller changes it`,
      );
    }
  },
  "delete claims": async (kube, _journal, seen, signal) => {
    for (const claim of seen.claims) {
      if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) continue;
      const { uid, resourceVersion } = claim.metadata;
      const options = { uid, resourceVersion, propagationPolicy: "Background", signal } as const;
      await kube.delete(resources.persistentVolumeClaims, claim.metadata, options);
    }
  },
  "delete volumes": async (kube, _journal, seen, signal) => {
    for (const volume of seen.volumes) {
      if (volume === undefined || volume.metadata.deletionTimestamp !== undefined) continue;
      const { name, uid, resourceVersion } = volume.metadata;
      await kube.delete(resources.persistentVolumes, { name }, { uid, resourceVersion, signal });
    }
  },
};

/** The template's volumes, those of the plan in the other form. */
export function turnedVolumes(
  { spec }: TemplateWorkload,
  planned: PlannedTemplate,
  direction: ConversionDirection,
): readonly TemplateVolume[] {
  const volumes = spec?.template?.spec?.volumes ?? [];
  return volumes.map((volume) => {
    const found = planned.volumes.find((each) => each.name === volume.name);
    if (found === undefined || formIn([volume], found) === undefined) return volume;
    return direction === "convert" ? found.after : found.before;
  });
}

async function scale(
  kube: KubeClient,
  { workload }: PlannedTemplate,
  replicas: number,
  signal: AbortSignal,
): Promise<void> {
  const body = { metadata: { uid: workload.uid }, spec: { replicas } };
  return kube.patch(workloadResource(workload), workload, { type: "merge", body }, { signal }).then(() => {});
}

/** One that is there is looked at next, by name and disk. */
async function unlessThere(created: Promise<unknown>): Promise<void> {
  try {
    await created;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}
