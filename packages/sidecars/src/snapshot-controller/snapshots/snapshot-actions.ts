/** The actions of the steps over a VolumeSnapshot, one small action each. */
import {
  type Actions,
  type KubeEnv,
  keyOf,
  type PersistentVolumeClaim,
  resources,
  type Stored,
  settled,
  withFinalizer,
} from "@longshore/kube";
import {
  beingDeletedAnnotation,
  defaultSnapshotClassAnnotation,
  snapshotClaimFinalizer,
  snapshotResources,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import type { ContentCreations } from "../content-creations.ts";
import { defaultClassOf } from "../default-class.ts";
import { failureActions, reporting } from "../failure-actions.ts";
import { again, CACHE_LAG_MS } from "../next-pass.ts";
import { SnapshotSourceError, type SourceVolume, sourceVolumeOf } from "../source-volume.ts";
import type { SubjectFailureStep } from "../subject-failure.ts";
import type { SubjectWrites } from "../subject-writes.ts";
import { type ContentSettings, contentOfSnapshot } from "./content-of-snapshot.ts";
import { snapshotFailure } from "./decide-snapshot.ts";
import { finalizersFor } from "./snapshot-goal.ts";
import {
  type ObservedSnapshot,
  type SnapshotStep,
  type SnapshotWork,
  type SnapshotWriteStep,
  snapshotOf,
} from "./snapshot-step.ts";

/** What the actions work with. */
export interface SnapshotContext {
  readonly env: KubeEnv;
  readonly writes: SubjectWrites<VolumeSnapshot>;
  readonly creations: ContentCreations<VolumeSnapshot, VolumeSnapshotContent>;
  readonly classes: () => readonly Stored<VolumeSnapshotClass>[];
  /** The node that looks after snapshots of the volume; undefined: one snapshotter looks after all. */
  readonly managedBy: (volume: SourceVolume) => string | undefined;
  readonly settings: ContentSettings;
  /** What waits for something else is looked at again after this time, in milliseconds, if no event comes first. */
  readonly lookAgainMs: number;
}

type SnapshotActions = Actions<ObservedSnapshot, SnapshotStep>;
type ReadStep = Exclude<SnapshotStep, SnapshotWriteStep | SubjectFailureStep>;
type CreationStep = "chooseClass" | "storeClass" | "prepareContent" | "holdClaim" | "createContent";
type ReportStep = "reportCreating" | "reportCreated" | "reportReady";
type RestStep = Exclude<SnapshotWriteStep["step"], CreationStep | ReportStep>;

/** A group takes its time: nothing wakes the snapshot when only the server knows of it. */
const GROUP_CHECK_MS = 30_000;

const { volumeSnapshotContents, volumeGroupSnapshots } = snapshotResources;

/** The actions. */
export function snapshotActions(context: SnapshotContext): SnapshotActions {
  const writing = {
    ...creationActions(context),
    ...reportActions(context),
    ...restActions(context),
  };
  return {
    ...reporting(writing, snapshotFailure),
    ...readActions(context),
    ...failureActions(context.env, context.writes, snapshotOf),
  };
}

function after(observed: ObservedSnapshot, work: SnapshotWork): { readonly observed: ObservedSnapshot } {
  return { observed: { ...observed, work: { ...observed.work, ...work } } };
}

function readActions({ env, writes, lookAgainMs }: SnapshotContext): Pick<SnapshotActions, ReadStep["step"]> {
  return {
    settle: () => settled,
    continue: () => again,
    reportWait({ reason, message }, observed) {
      writes.event(snapshotOf(observed), "Warning", reason, message);
      return after(observed, { isWaitReported: true });
    },
    lookLater: () => ({ requeueAfterMs: lookAgainMs }),
    awaitCache: () => ({ requeueAfterMs: CACHE_LAG_MS }),
    awaitGroup: () => ({ requeueAfterMs: GROUP_CHECK_MS }),
    async readContent({ name }, observed, { signal }) {
      const stored = await env.kube.get(volumeSnapshotContents, { name }, { signal });
      return after(observed, { contentOnServer: stored === undefined ? "none" : "there" });
    },
    async readGroup({ name, uid }, observed, { signal }) {
      const { namespace = "" } = snapshotOf(observed).metadata;
      const isServed = (await env.kube.servedVersion(volumeGroupSnapshots, { signal })) !== undefined;
      const ref = { namespace, name };
      const found = isServed ? await env.kube.get(volumeGroupSnapshots, ref, { signal }) : undefined;
      const isThere = found !== undefined && (uid === undefined || found.metadata.uid === uid);
      return after(observed, { groupOnServer: isThere ? "there" : "none" });
    },
    fail: ({ failure }, observed) => ({ observed: { ...observed, failure } }),
  };
}

function creationActions(context: SnapshotContext): Pick<SnapshotActions, CreationStep> {
  const { env, writes } = context;
  return {
    async chooseClass({ claim }, observed, { signal }) {
      const { driver } = await sourceVolumeOf(env.kube, claim, { signal });
      const { metadata, deletionPolicy } = defaultClassOf(
        context.classes(),
        defaultSnapshotClassAnnotation,
        driver,
      );
      return after(observed, { chosenClass: { name: metadata.name, deletionPolicy } });
    },
    async storeClass({ chosen }, observed, { signal }) {
      const spec = { volumeSnapshotClassName: chosen.name };
      const finalizers = finalizersFor(chosen.deletionPolicy);
      await writes.addFinalizers(snapshotOf(observed), finalizers, signal, { spec });
      return again;
    },
    prepareContent: ({ claim }, observed, { signal }) => prepareContent(context, claim, observed, signal),
    async holdClaim({ claim }, observed, { signal }) {
      // Written whole: the reference's rights have no patch of claims.
      const held = withFinalizer(claim, snapshotClaimFinalizer);
      await env.kube.update(resources.persistentVolumeClaims, held, { signal });
      return after(observed, { isClaimHeld: true });
    },
    async createContent({ content }, observed, { signal }) {
      const isStored = await context.creations.create(snapshotOf(observed), content, signal);
      return isStored ? after(observed, { isContentCreated: true }) : { requeueAfterMs: CACHE_LAG_MS };
    },
  };
}

async function prepareContent(
  context: SnapshotContext,
  claim: Stored<PersistentVolumeClaim>,
  observed: ObservedSnapshot,
  signal: AbortSignal,
) {
  const { snapshot, snapshotClass } = observed.facts;
  if (snapshotClass === undefined) throw new SnapshotSourceError("its class is gone");
  const volume = await sourceVolumeOf(context.env.kube, claim, { signal });
  const { settings, managedBy } = context;
  const newContent = contentOfSnapshot(snapshot, snapshotClass, volume, settings, managedBy(volume));
  return after(observed, { newContent });
}

function reportActions({ writes }: SnapshotContext): Pick<SnapshotActions, ReportStep> {
  const report = (observed: ObservedSnapshot, reason: string, messageOf: (key: string) => string) => {
    const snapshot = snapshotOf(observed);
    writes.event(snapshot, "Normal", reason, messageOf(keyOf(snapshot)));
  };
  return {
    reportCreating(_, observed) {
      const message = (key: string) => `Waiting for a snapshot ${key} to be created by the CSI driver.`;
      report(observed, "CreatingSnapshot", message);
      return again;
    },
    reportCreated(_, observed) {
      const message = (key: string) => `Snapshot ${key} was successfully created by the CSI driver.`;
      report(observed, "SnapshotCreated", message);
      return after(observed, { isCreationReported: true });
    },
    reportReady(_, observed) {
      report(observed, "SnapshotReady", (key) => `Snapshot ${key} is ready to use.`);
      return again;
    },
  };
}

function restActions(context: SnapshotContext): Pick<SnapshotActions, RestStep> {
  const { env, writes } = context;
  return {
    async addFinalizers({ finalizers }, observed, { signal }) {
      await writes.addFinalizers(snapshotOf(observed), finalizers, signal);
      return again;
    },
    async bindContent({ content, uid, className }, _, { signal }) {
      const named = className === undefined ? {} : { volumeSnapshotClassName: className };
      await patchContent(context, content, { spec: { volumeSnapshotRef: { uid }, ...named } }, signal);
      return again;
    },
    async storeStatus({ status }, observed, { signal }) {
      await writes.patchStatus(snapshotOf(observed), status, signal);
      return after(observed, { isStatusStored: true });
    },
    async joinGroup({ group }, observed, { signal }) {
      const { apiVersion = "groupsnapshot.storage.k8s.io/v1", metadata } = group;
      const owner = { apiVersion, kind: "VolumeGroupSnapshot", name: metadata.name, uid: metadata.uid };
      const snapshot = snapshotOf(observed);
      const ownerReferences = [...(snapshot.metadata.ownerReferences ?? []), owner];
      await writes.change(snapshot, { ownerReferences }, signal);
      return again;
    },
    async announceDeletion({ content }, _, { signal }) {
      const metadata = { annotations: { [beingDeletedAnnotation]: "yes" } };
      await patchContent(context, content, { metadata }, signal);
      return again;
    },
    async deleteContent({ content }, _, { signal }) {
      // On the version that was seen: its policy, and the snapshot it is bound to, are those of the decision.
      const { uid, name, resourceVersion } = content.metadata;
      await env.kube.delete(volumeSnapshotContents, { name }, { signal, uid, resourceVersion });
      return again;
    },
    async removeFinalizers({ finalizers }, observed, { signal }) {
      await writes.removeFinalizers(snapshotOf(observed), finalizers, signal);
      return settled;
    },
  };
}

/** Writes a content, unless another client has changed it. */
async function patchContent(
  { env }: SnapshotContext,
  content: Stored<VolumeSnapshotContent>,
  change: { readonly metadata?: object; readonly spec?: object },
  signal: AbortSignal,
): Promise<void> {
  const { name, resourceVersion } = content.metadata;
  const body = { ...change, metadata: { resourceVersion, ...change.metadata } };
  await env.kube.patch(volumeSnapshotContents, { name }, { type: "merge", body }, { signal });
}
