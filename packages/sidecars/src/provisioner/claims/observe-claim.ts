/** What a pass over a claim begins with: read from caches and memory, in one turn. */
import { isDeleting, type PersistentVolume, type StorageClass } from "@longshore/kube";
import {
  accessibilityRequirements,
  betaStorageClassAnnotation,
  deletionSecretNameAnnotation,
  volumeName,
} from "@longshore/storage";
import { isIntended, selectedNodeOf } from "../claim-writes.ts";
import { type OwnNode, shareOf } from "../node-deployment.ts";
import { isOfDriver } from "../volume-goal.ts";
import type { ClaimContext } from "./claim-context.ts";
import type { ClaimFacts } from "./claim-goal.ts";
import type { Attempt } from "./claim-memory.ts";
import { isClaimOurs } from "./claim-owner.ts";
import type { Claim, ObservedClaim, ObservedContention } from "./claim-step.ts";

/** What the server was asked for in this pass. */
export interface LiveReadings {
  /** Undefined: it was not asked; `gone`: there is none. */
  readonly claim?: Claim | "gone";
  readonly volume?: PersistentVolume | "none";
}

/** What is known of the claim of this key; undefined: there is neither a claim nor work left for one. */
export function observeClaim(
  context: ClaimContext,
  key: string,
  live: LiveReadings = {},
): ObservedClaim | undefined {
  const cached = context.claims.get(key);
  const attempt = context.memory.attempt(key);
  const claim = live.claim === "gone" ? undefined : (live.claim ?? cached);
  if (claim === undefined && attempt === undefined) return undefined;
  // A claim made under the same name since is another one: the volume of the old one is accounted for first.
  const isVanished = attempt !== undefined && attempt.claim.metadata.uid !== claim?.metadata.uid;
  const storageClass = claim === undefined ? undefined : context.storageClasses.get(classNameOf(claim));
  const facts = claim === undefined ? noFacts : factsOf(context, claim, storageClass, attempt, live);
  const mayExist = attempt === undefined ? facts.intended : attempt.lastAnswer === "uncertain";
  const nodeExists = (name: string) => context.nodeByName(name) !== undefined;
  const share = claim === undefined ? "owned" : shareOf(context.ownNode, claim, storageClass, nodeExists);
  const isUnknown = facts.intended && attempt === undefined;
  return {
    key,
    claim,
    cached,
    attempt,
    isVanished,
    needsLiveClaim:
      claim !== undefined && isUnknown && live.claim === undefined && isClaimOurs(context.driver, claim),
    // What this process wrote, its caches show; what one before it wrote, they may not show yet. That a volume to which
    // the claim is bound is gone, only the server can say.
    needsLiveVolume:
      ((isUnknown && facts.ours) || (facts.intended && facts.boundToOwn)) &&
      !facts.pvStored &&
      live.volume === undefined,
    share,
    storageClass,
    facts,
    contention: share === "unassigned" ? contentionOf(context, claim, storageClass, facts.ours) : undefined,
    storesIntent: context.likeReference !== true,
    mayExist,
    startedMs: context.env.clock.monotonicMs(),
    work: attempt !== undefined && mayExist && !isVanished ? resumed(attempt) : {},
    failure: undefined,
  };
}

function resumed({ prepared, made }: Attempt): ObservedClaim["work"] {
  return { prepared, ...(made === undefined ? {} : { made }) };
}

/** The name of the claim's StorageClass. */
export function classNameOf(claim: Claim): string {
  return claim.metadata.annotations?.[betaStorageClassAnnotation] ?? claim.spec?.storageClassName ?? "";
}

/** The name of the claim's volume: the same in each attempt, so that a repeated call finds the volume made before. */
export function volumeNameOf({ settings }: ClaimContext, claim: Claim): string {
  return volumeName(settings.volumeNamePrefix, claim.metadata.uid, settings.volumeNameUuidLength);
}

const noFacts: ClaimFacts = {
  ours: false,
  deleting: false,
  bound: false,
  boundToOwn: false,
  intended: false,
  pvStored: false,
  pvForeign: false,
  pvOfDriver: false,
  classFound: false,
  delayed: false,
  selectedNode: undefined,
  nodeFound: false,
  lastAnswer: "unknown",
};

function factsOf(
  context: ClaimContext,
  claim: Claim,
  storageClass: StorageClass | undefined,
  attempt: Attempt | undefined,
  live: LiveReadings,
): ClaimFacts {
  const selectedNode = selectedNodeOf(claim);
  const ownName = volumeNameOf(context, claim);
  const found = live.volume ?? context.volumes.get(ownName);
  const pv = found === "none" ? undefined : found;
  return {
    ours: isClaimOurs(context.driver, claim) && isKnownClass(context, storageClass),
    deleting: isDeleting(claim),
    bound: (claim.spec?.volumeName ?? "") !== "",
    boundToOwn: claim.spec?.volumeName === ownName,
    intended: isIntended(claim),
    pvStored: pv !== undefined,
    pvOfDriver: pv !== undefined && isOfDriver(context.driver, pv),
    // Volumes of a CSI provisioner carry the annotation even when it is empty (docs/behaviour/sidecars.md 2.3).
    pvForeign: pv !== undefined && pv.metadata?.annotations?.[deletionSecretNameAnnotation] === undefined,
    classFound: storageClass !== undefined,
    delayed: storageClass?.volumeBindingMode === "WaitForFirstConsumer",
    selectedNode,
    nodeFound: selectedNode !== undefined && context.nodeByName(selectedNode) !== undefined,
    lastAnswer: attempt?.lastAnswer ?? "unknown",
  };
}

/** True also without the class, which may be created later. A claim with another provisioner's class is not ours. */
function isKnownClass({ driver }: ClaimContext, storageClass: StorageClass | undefined): boolean {
  if (storageClass === undefined) return true;
  return storageClass.provisioner === driver.name || storageClass.provisioner === driver.inTreeName;
}

function contentionOf(
  context: ClaimContext,
  claim: Claim | undefined,
  storageClass: StorageClass | undefined,
  isOurs: boolean,
): ObservedContention | undefined {
  const { ownNode, memory, env } = context;
  if (claim === undefined || ownNode === undefined || storageClass === undefined) return undefined;
  const waiting = memory.contentions.get(claim.metadata.uid);
  const isWanted = !isDeleting(claim) && !claim.spec?.volumeName;
  return {
    isOurs,
    isFit: isOurs && isWanted && fitsHere(context, ownNode, claim, storageClass),
    races: waiting?.races,
    dueInMs: waiting === undefined ? 0 : Math.max(0, waiting.dueMs - env.clock.monotonicMs()),
    hasRoom: context.driver.capabilities.controller.has("GET_CAPACITY") ? undefined : true,
    isLost: false,
  };
}

/** Whether a class that allows only some places allows this one. */
function fitsHere(
  { driver, settings, csiNodes, nodes }: ClaimContext,
  own: OwnNode,
  claim: Claim,
  { allowedTopologies = [] }: StorageClass,
): boolean {
  if (allowedTopologies.length === 0) return true;
  try {
    accessibilityRequirements({
      driverName: driver.name,
      pvcName: claim.metadata.name,
      allowedTopologies,
      selectedNode: own.name,
      strictTopology: settings.strictTopology,
      immediateTopology: settings.immediateTopology,
      csiNodes: csiNodes(),
      nodes: nodes(),
    });
    return true;
  } catch {
    return false;
  }
}
