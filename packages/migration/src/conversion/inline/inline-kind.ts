/** What a conversion of the inline volumes of a workload looks at, decides and does. */
import { isPodTerminal, type KubeClient, resources } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import { workloadResource } from "../observe-volume.ts";
import { hasBegun, type UnitKind, type UnitPlaces } from "../units/unit-run.ts";
import { decideInlineStep } from "./decide-inline-step.ts";
import { inlineActions } from "./inline-actions.ts";
import { inlineDiskKey } from "./inline-disks.ts";
import { isInlineScaledDown } from "./inline-journal.ts";
import type {
  InlineJournal,
  InlineObservation,
  InlineStep,
  PlannedTemplate,
  TemplateWorkload,
} from "./inline-types.ts";
import { disksOfPod, type InlineUsers } from "./inline-users.ts";

/** Caches that lack what the API server shows are given this time, in milliseconds. */
const lateMs = 1000;

/** @param users who has the disks, from caches */
export function inlineKind(
  clock: Clock,
  users: InlineUsers,
): UnitKind<InlineStep, InlineJournal, InlineObservation> {
  return {
    observe: (kube, { planned }, signal) => observe(kube, planned, users, signal),
    decide: (journal, seen) =>
      decideInlineStep(
        {
          planned: journal.planned,
          direction: journal.direction,
          isScaledDown: isInlineScaledDown(journal),
          claimDeletionBegun: hasBegun(journal, "delete claims"),
          volumeDeletionBegun: hasBegun(journal, "delete volumes"),
        },
        seen,
      ),
    actions: Object.fromEntries(
      Object.entries(inlineActions).map(([step, act]) => [
        step,
        async (
          { kube }: UnitPlaces,
          journal: InlineJournal,
          seen: InlineObservation,
          signal: AbortSignal,
        ) => {
          // The caches see the pod soon, and then it is waited for.
          if (step === "change template" && (await hasPod(kube, journal.planned, signal)))
            await clock.sleep(lateMs, signal);
          else await act(kube, journal, seen, signal);
          return undefined;
        },
      ]),
    ),
    dangerous: new Set(["change template", "delete claims", "delete volumes"]),
  };
}

async function observe(
  kube: KubeClient,
  planned: PlannedTemplate,
  users: InlineUsers,
  signal: AbortSignal,
): Promise<InlineObservation> {
  const { workload: ref } = planned;
  const [workload, ...objects] = await Promise.all([
    kube.get<TemplateWorkload>(workloadResource(ref), ref, { signal }),
    ...planned.volumes.map(async ({ volume, claim }) => {
      const { name = "", namespace = "" } = claim.metadata ?? {};
      const volumeRef = { name: volume.metadata?.name ?? "" };
      return {
        volume: await kube.get(resources.persistentVolumes, volumeRef, { signal }),
        claim: await kube.get(resources.persistentVolumeClaims, { namespace, name }, { signal }),
      };
    }),
  ]);
  const { all, claims } = users.of(planned);
  return {
    workload,
    volumes: objects.map(({ volume }) => volume),
    claims: objects.map(({ claim }) => claim),
    users: all,
    claimUsers: claims,
  };
}

/** A pod of the namespace that has one of the disks, as the API server itself says. */
async function hasPod(
  kube: KubeClient,
  { workload: { namespace }, volumes }: PlannedTemplate,
  signal: AbortSignal,
): Promise<boolean> {
  const keys = new Set(volumes.map(({ before }) => inlineDiskKey(before, namespace)));
  const claims = new Set(volumes.map(({ claim }) => claim.metadata?.name));
  const { items } = await kube.list(resources.pods, { namespace, signal });
  return items.some(
    (pod) =>
      !isPodTerminal(pod) &&
      (disksOfPod(pod).some((key) => keys.has(key)) ||
        pod.spec?.volumes?.some(({ persistentVolumeClaim: claim }) => claims.has(claim?.claimName))),
  );
}
