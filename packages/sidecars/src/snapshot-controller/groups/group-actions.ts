/** The actions of the steps over a VolumeGroupSnapshot, one small action each. */
import {
  type Actions,
  type KubeEnv,
  keyOf,
  labelSelectorMatches,
  type PersistentVolumeClaim,
  type Stored,
  settled,
} from "@longshore/kube";
import {
  defaultGroupSnapshotClassAnnotation,
  groupBeingDeletedAnnotation,
  groupSnapshotFinalizer,
  snapshotResources,
  type VolumeGroupSnapshot,
  type VolumeGroupSnapshotClass,
  type VolumeGroupSnapshotContent,
} from "@longshore/storage";
import type { ContentCreations } from "../content-creations.ts";
import { defaultClassOf } from "../default-class.ts";
import { failureActions, reporting } from "../failure-actions.ts";
import { again, CACHE_LAG_MS } from "../next-pass.ts";
import { SnapshotSourceError, type SourceVolume, sourceVolumeOf } from "../source-volume.ts";
import type { SubjectFailureStep } from "../subject-failure.ts";
import type { SubjectWrites } from "../subject-writes.ts";
import { contentOfGroup } from "./content-of-group.ts";
import { groupFailure } from "./decide-group.ts";
import {
  type GroupStep,
  type GroupWork,
  type GroupWriteStep,
  groupOfPass,
  type MemberStep,
  type ObservedGroup,
} from "./group-step.ts";
import { memberActions } from "./member-actions.ts";

/** What the actions work with. */
export interface GroupContext {
  readonly env: KubeEnv;
  readonly writes: SubjectWrites<VolumeGroupSnapshot>;
  readonly creations: ContentCreations<VolumeGroupSnapshot, VolumeGroupSnapshotContent>;
  readonly claims: () => readonly Stored<PersistentVolumeClaim>[];
  readonly classes: () => readonly Stored<VolumeGroupSnapshotClass>[];
  /** What waits for something else is looked at again after this time, in milliseconds, if no event comes first. */
  readonly lookAgainMs: number;
}

type GroupActions = Actions<ObservedGroup, GroupStep>;
type ReadStep = Exclude<GroupStep, GroupWriteStep | MemberStep | SubjectFailureStep>;
type CreationStep = "chooseClass" | "storeClass" | "prepareContent" | "createContent";
type ReportStep = "reportCreating" | "reportCreated" | "reportReady";
type RestStep = Exclude<GroupWriteStep["step"], CreationStep | ReportStep>;

const { volumeGroupSnapshotContents } = snapshotResources;

/** The actions. */
export function groupActions(context: GroupContext): GroupActions {
  const writing = {
    ...creationActions(context),
    ...reportActions(context),
    ...restActions(context),
    ...memberActions(context.env),
  };
  return {
    ...reporting(writing, groupFailure),
    ...readActions(context),
    ...failureActions(context.env, context.writes, groupOfPass),
  };
}

function after(observed: ObservedGroup, work: GroupWork): { readonly observed: ObservedGroup } {
  return { observed: { ...observed, work: { ...observed.work, ...work } } };
}

function readActions({ env, writes, lookAgainMs }: GroupContext): Pick<GroupActions, ReadStep["step"]> {
  return {
    settle: () => settled,
    continue: () => again,
    reportWait({ reason, message }, observed) {
      writes.event(groupOfPass(observed), "Warning", reason, message);
      return after(observed, { isWaitReported: true });
    },
    lookLater: () => ({ requeueAfterMs: lookAgainMs }),
    awaitCache: () => ({ requeueAfterMs: CACHE_LAG_MS }),
    async readContent({ name }, observed, { signal }) {
      const stored = await env.kube.get(volumeGroupSnapshotContents, { name }, { signal });
      return after(observed, { contentOnServer: stored === undefined ? "none" : "there" });
    },
    fail: ({ failure }, observed) => ({ observed: { ...observed, failure } }),
  };
}

function creationActions(context: GroupContext): Pick<GroupActions, CreationStep> {
  const { writes } = context;
  return {
    async chooseClass(_, observed, { signal }) {
      const [volume] = await sourceVolumes(context, groupOfPass(observed), signal);
      if (volume === undefined) throw new SnapshotSourceError("the selector chooses no claim");
      const chosen = defaultClassOf(context.classes(), defaultGroupSnapshotClassAnnotation, volume.driver);
      return after(observed, { chosenClass: chosen.metadata.name });
    },
    async storeClass({ className }, observed, { signal }) {
      const spec = { volumeGroupSnapshotClassName: className };
      await writes.addFinalizers(groupOfPass(observed), [groupSnapshotFinalizer], signal, { spec });
      return again;
    },
    async prepareContent(_, observed, { signal }) {
      const { group, groupClass } = observed.facts;
      if (groupClass === undefined) throw new SnapshotSourceError("its class is gone");
      const volumes = await sourceVolumes(context, group, signal);
      return after(observed, { newContent: contentOfGroup(group, groupClass, volumes) });
    },
    async createContent({ content }, observed, { signal }) {
      const isStored = await context.creations.create(groupOfPass(observed), content, signal);
      return isStored ? after(observed, { isContentCreated: true }) : { requeueAfterMs: CACHE_LAG_MS };
    },
  };
}

/** The volumes of the claims that the group chooses, in the order of the claims' names. */
async function sourceVolumes(
  context: GroupContext,
  { metadata: { namespace }, spec }: Stored<VolumeGroupSnapshot>,
  signal: AbortSignal,
): Promise<readonly SourceVolume[]> {
  const { selector = {} } = spec.source;
  const chosen = context
    .claims()
    .filter(({ metadata }) => metadata.namespace === namespace)
    .filter(({ metadata }) => labelSelectorMatches(selector, metadata.labels ?? {}))
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  if (chosen.length === 0) throw new SnapshotSourceError("the selector chooses no claim");
  const volumes: SourceVolume[] = [];
  for (const claim of chosen) volumes.push(await sourceVolumeOf(context.env.kube, claim, { signal }));
  return volumes;
}

function reportActions({ writes }: GroupContext): Pick<GroupActions, ReportStep> {
  const report = (observed: ObservedGroup, reason: string, messageOf: (key: string) => string) => {
    const group = groupOfPass(observed);
    writes.event(group, "Normal", reason, messageOf(keyOf(group)));
  };
  return {
    reportCreating(_, observed) {
      const message = (key: string) => `Waiting for a group snapshot ${key} to be created by the CSI driver.`;
      report(observed, "CreatingGroupSnapshot", message);
      return again;
    },
    reportCreated(_, observed) {
      const message = (key: string) => `GroupSnapshot ${key} was successfully created by the CSI driver.`;
      report(observed, "GroupSnapshotCreated", message);
      return after(observed, { isCreationReported: true });
    },
    reportReady(_, observed) {
      report(observed, "GroupSnapshotReady", (key) => `GroupSnapshot ${key} is ready to use.`);
      return again;
    },
  };
}

function restActions(context: GroupContext): Pick<GroupActions, RestStep> {
  const { env, writes } = context;
  return {
    async addFinalizer(_, observed, { signal }) {
      await writes.addFinalizers(groupOfPass(observed), [groupSnapshotFinalizer], signal);
      return again;
    },
    async bindContent({ content, uid, className }, _, { signal }) {
      const named = className === undefined ? {} : { volumeGroupSnapshotClassName: className };
      await patchContent(context, content, { spec: { volumeGroupSnapshotRef: { uid }, ...named } }, signal);
      return again;
    },
    async storeStatus({ status }, observed, { signal }) {
      await writes.patchStatus(groupOfPass(observed), status, signal);
      return after(observed, { isStatusStored: true });
    },
    async announceDeletion({ content }, _, { signal }) {
      const metadata = { annotations: { [groupBeingDeletedAnnotation]: "yes" } };
      await patchContent(context, content, { metadata }, signal);
      return again;
    },
    async deleteContent({ content }, _, { signal }) {
      // On the version that was seen: its policy, and the group it is bound to, are those of the decision.
      const { uid, name, resourceVersion } = content.metadata;
      await env.kube.delete(volumeGroupSnapshotContents, { name }, { signal, uid, resourceVersion });
      return again;
    },
    async removeFinalizer(_, observed, { signal }) {
      await writes.removeFinalizers(groupOfPass(observed), [groupSnapshotFinalizer], signal);
      return settled;
    },
  };
}

/** Writes a content, unless another client has changed it. */
async function patchContent(
  { env }: GroupContext,
  content: Stored<VolumeGroupSnapshotContent>,
  change: { readonly metadata?: object; readonly spec?: object },
  signal: AbortSignal,
): Promise<void> {
  const { name, resourceVersion } = content.metadata;
  const body = { ...change, metadata: { resourceVersion, ...change.metadata } };
  await env.kube.patch(volumeGroupSnapshotContents, { name }, { type: "merge", body }, { signal });
}
