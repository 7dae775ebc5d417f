/** Every step of a pass over a claim, reached from the observation that calls for it. */
import type { PersistentVolume, StorageClass } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProvisionError } from "../create-outcome.ts";
import type { VolumeDraft } from "../requests/volume-draft.ts";
import type { PreparedVolume } from "../requests/volume-request.ts";
import type { ContentSource } from "../sources/content-source.ts";
import type { ClaimFacts } from "./claim-goal.ts";
import type { Attempt } from "./claim-memory.ts";
import type { Claim, ClaimWork, ObservedClaim, ObservedContention } from "./claim-step.ts";
import { decideClaim } from "./decide-claim.ts";

const decide = pureDecision(decideClaim);

const claim = { metadata: { name: "c", namespace: "d", uid: "u1", resourceVersion: "1" } } as Claim;
const going = { metadata: { ...claim.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } } as Claim;
const other = { metadata: { ...claim.metadata, uid: "u2" } } as Claim;
const prepared = { pvName: "pvc-u1", dataSource: undefined } as PreparedVolume;
const source = { kind: "clone", name: "src", namespace: "d", crossesNamespaces: false } as const;
const draft = { dataSource: undefined, attributesClass: undefined } as VolumeDraft;
const cloned: PreparedVolume = { ...prepared, dataSource: source };
const made = { pv: {} as PersistentVolume, volumeId: "vol-1" };
const unfit = { volumeId: "vol-1", error: new ProvisionError("Background", "too small") };
const uncertain: Attempt = { claim, prepared, lastAnswer: "uncertain" };
const storing: Attempt = { ...uncertain, made, isStoringUncertain: true };
const final: Attempt = { claim, prepared, lastAnswer: "final" };

const facts: ClaimFacts = {
  ours: true,
  deleting: false,
  bound: false,
  boundToOwn: false,
  intended: false,
  pvStored: false,
  pvForeign: false,
  pvOfDriver: false,
  classFound: true,
  delayed: false,
  selectedNode: undefined,
  nodeFound: false,
  lastAnswer: "unknown",
};
const intended: ClaimFacts = { ...facts, intended: true };

const fresh: ObservedClaim = {
  key: "d/c",
  claim,
  cached: claim,
  attempt: undefined,
  isVanished: false,
  needsLiveClaim: false,
  needsLiveVolume: false,
  share: "owned",
  storageClass: {} as StorageClass,
  facts,
  contention: undefined,
  storesIntent: true,
  mayExist: false,
  startedMs: 0,
  work: {},
  failure: undefined,
};

const secrets = () => ({ key: "value" });
const ready: ClaimWork = { prepared, secrets, isIntentStored: true, isBeginReported: true };
const answered: ClaimWork = { ...ready, made };
const accounted: ClaimWork = { ...answered, stored: "created", isAccounted: true };
const cancelled: ClaimFacts = { ...intended, deleting: true, lastAnswer: "uncertain" };
const found: ClaimWork = { lookup: { prepared, secrets, found: { volumeId: "vol-1" } } };
const contention: ObservedContention = {
  isOurs: true,
  isFit: true,
  races: 1,
  dueInMs: 0,
  hasRoom: true,
  isLost: false,
};

type Row = readonly [name: string, observed: Partial<ObservedClaim>, step: string];

const beginnings: readonly Row[] = [
  ["no claim and no attempt", { claim: undefined, cached: undefined }, "settle"],
  ["the intent of an earlier process: is the cache stale?", { needsLiveClaim: true }, "readClaim"],
  ["the volume of an earlier process may be stored", { needsLiveVolume: true }, "readVolume"],
  ["another's claim", { facts: { ...facts, ours: false } }, "settle"],
  ["the class is missing", { facts: { ...facts, classFound: false } }, "refuse"],
  ["the chosen node is gone", { facts: { ...facts, selectedNode: "n" } }, "removeSelectedNode"],
];

const provisioning: readonly Row[] = [
  ["a new claim", {}, "draftVolume"],
  ["its class is gone", { storageClass: undefined }, "refuse"],
  ["it copies nothing", { work: { draft } }, "selectTopology"],
  ["it wants a copy", { work: { draft: { ...draft, dataSource: source } } }, "resolveSource"],
  [
    "its source is fit",
    { work: { draft: { ...draft, dataSource: source }, contentSource: {} as ContentSource } },
    "selectTopology",
  ],
  ["its places are selected", { work: { draft, selected: { places: undefined } } }, "composeRequest"],
  [
    "it names a VolumeAttributesClass",
    {
      work: {
        draft: { ...draft, attributesClass: "gold" },
        selected: { places: undefined },
        composed: prepared,
      },
    },
    "readAttributesClass",
  ],
  ["the request cannot be made", { work: { refused: new ProvisionError("Finished", "no") } }, "fail"],
  [
    "not for this node, and an earlier process may have made it",
    { mayExist: true, facts: intended, work: { refused: new ProvisionError("Reschedule", "no") } },
    "prepareLookup",
  ],
  [
    "the same, once nothing is left",
    {
      mayExist: true,
      facts: intended,
      work: {
        refused: new ProvisionError("Reschedule", "no"),
        lookup: { prepared, secrets, found: "none" },
      },
    },
    "fail",
  ],
  ["the request is made", { work: { prepared } }, "readSecret"],
  ["it copies something", { work: { prepared: cloned, secrets } }, "protectSource"],
  [
    "the source is protected",
    { work: { prepared: cloned, secrets, isSourceProtected: true } },
    "storeIntent",
  ],
  [
    "it was, when the intent was stored",
    { facts: intended, work: { prepared: cloned, secrets } },
    "reportBegin",
  ],
  ["the secret is read", { work: { prepared, secrets } }, "storeIntent"],
  ["no intent is stored (compat)", { storesIntent: false, work: { prepared, secrets } }, "reportBegin"],
  ["the intent is stored", { work: { prepared, secrets, isIntentStored: true } }, "reportBegin"],
  ["it was reported", { work: ready }, "createVolume"],
  [
    "a second attempt reports nothing",
    { attempt: final, facts: { ...intended, lastAnswer: "final" }, work: { prepared, secrets } },
    "createVolume",
  ],
  ["the driver has made it", { work: answered }, "storeVolume"],
  ["the claim is being deleted meanwhile", { cached: going, work: answered }, "readStoredVolume"],
  ["the cache has lost the claim meanwhile", { cached: undefined, work: answered }, "confirmClaim"],
  ["the cache shows another claim of the name", { cached: other, work: answered }, "confirmClaim"],
  [
    "the server still has it",
    { cached: undefined, work: { ...answered, onServer: "wanted" } },
    "storeVolume",
  ],
  [
    "the server has it no more",
    { cached: undefined, work: { ...answered, onServer: "gone" } },
    "readStoredVolume",
  ],
  [
    "it may be stored already: storing it got no answer",
    { attempt: storing, work: answered },
    "confirmClaim",
  ],
  [
    "and the claim still has no volume",
    { attempt: storing, work: { ...answered, onServer: "wanted" } },
    "storeVolume",
  ],
  [
    "and the claim has, or had, its volume",
    { attempt: storing, work: { ...answered, onServer: "gone" } },
    "readStoredVolume",
  ],
  [
    "its volume is deleted",
    { cached: going, work: { ...answered, removal: { isStored: false, secrets, isDeleted: true } } },
    "account",
  ],
  ["what was made is unfit", { work: { ...ready, unfit } }, "readStoredVolume"],
  [
    "and is deleted",
    { work: { ...ready, unfit, removal: { isStored: false, secrets, isDeleted: true } } },
    "rejectVolume",
  ],
  ["the object is stored", { work: { ...answered, stored: "created" } }, "reportSuccess"],
  ["the object's name is taken", { work: { ...answered, stored: "taken" } }, "readStoredVolume"],
  [
    "by the same volume",
    { work: { ...answered, stored: "taken", removal: { isStored: true } } },
    "reportSuccess",
  ],
  [
    "by another volume",
    { work: { ...answered, stored: "taken", removal: { isStored: false } } },
    "readDeletionSecret",
  ],
  [
    "so that ours is deleted",
    { work: { ...answered, stored: "taken", removal: { isStored: false, secrets, isDeleted: true } } },
    "account",
  ],
  ["success is reported", { work: { ...answered, stored: "created", isSuccessReported: true } }, "account"],
];

const endings: readonly Row[] = [
  ["all is accounted for", { work: accounted }, "removeIntent"],
  ["the intent is removed", { work: { ...accounted, isIntentRemoved: true } }, "forget"],
  [
    "nothing else is restored from its snapshot",
    { work: { ...accounted, isIntentRemoved: true, isForgotten: true, sourceToFree: "d/s" } },
    "freeSnapshot",
  ],
  [
    "no source is left to be freed",
    { work: { ...accounted, isIntentRemoved: true, isForgotten: true } },
    "settle",
  ],
  ["the volume is stored already", { facts: { ...intended, pvStored: true } }, "removeIntent"],
];

const removals: readonly Row[] = [
  ["an unwanted claim after a restart", { facts: { ...intended, deleting: true } }, "prepareLookup"],
  [
    "an unwanted claim with an uncertain attempt",
    { attempt: uncertain, facts: cancelled },
    "readLookupSecret",
  ],
  [
    "its secret is read",
    { attempt: uncertain, facts: cancelled, work: { lookup: { secrets } } },
    "findVolume",
  ],
  ["a volume is found", { attempt: uncertain, facts: cancelled, work: found }, "readStoredVolume"],
  [
    "no object stands for it",
    { attempt: uncertain, facts: cancelled, work: { ...found, removal: { isStored: false } } },
    "readDeletionSecret",
  ],
  [
    "the secret for the deletion is read",
    { attempt: uncertain, facts: cancelled, work: { ...found, removal: { isStored: false, secrets } } },
    "deleteVolume",
  ],
  [
    "an object stands for it",
    { attempt: uncertain, facts: cancelled, work: { ...found, removal: { isStored: true } } },
    "account",
  ],
  [
    "none is found",
    { attempt: uncertain, facts: cancelled, work: { lookup: { prepared, secrets, found: "none" } } },
    "account",
  ],
  [
    "and the claim goes",
    { attempt: uncertain, facts: cancelled, work: { isAccounted: true } },
    "removeIntent",
  ],
  [
    "or, with its node gone, back to the scheduler",
    {
      attempt: uncertain,
      facts: { ...cancelled, deleting: false, selectedNode: "n" },
      work: { isAccounted: true },
    },
    "removeSelectedNode",
  ],
];

const vanished = { isVanished: true, claim: undefined, cached: undefined } as const;
const others: readonly Row[] = [
  ["a vanished claim with nothing open", { ...vanished, attempt: final }, "forgetAttempt"],
  ["a vanished claim with an uncertain call", { ...vanished, attempt: uncertain }, "confirmVanished"],
  [
    "only the cache has lost it",
    { ...vanished, attempt: uncertain, work: { onServer: "wanted" } },
    "awaitCache",
  ],
  [
    "the server has lost it, too",
    { ...vanished, attempt: uncertain, work: { onServer: "gone" } },
    "readLookupSecret",
  ],
  [
    "with a volume that may have been stored, kept and given up",
    { ...vanished, attempt: storing, work: { onServer: "gone" } },
    "forgetAttempt",
  ],
  [
    "and nothing is left of it",
    { ...vanished, attempt: uncertain, work: { onServer: "gone", lookup: { secrets, found: "none" } } },
    "forgetAttempt",
  ],
  ["another node's claim", { share: "foreign" }, "leaveToOthers"],
  ["another node's claim, uncertain here", { share: "foreign", attempt: uncertain }, "readLookupSecret"],
  ["unassigned, and not ours", { contention: { ...contention, isOurs: false } }, "settle"],
  ["unassigned, and not for this node", { contention: { ...contention, isFit: false } }, "leaveContention"],
  ["unassigned, and new", { contention: { ...contention, races: undefined } }, "pauseContention"],
  ["unassigned, and not its turn yet", { contention: { ...contention, dueInMs: 5 } }, "awaitTurn"],
  ["its turn has come", { contention: { ...contention, hasRoom: undefined } }, "askForRoom"],
  ["there is no room", { contention: { ...contention, hasRoom: false } }, "pauseContention"],
  ["there is room", { contention }, "takeClaim"],
  ["another provisioner was faster", { contention: { ...contention, isLost: true } }, "pauseContention"],
];

const error = new Error("x");
const refusedFor = (code: string) => new ProvisionError("Finished", "x", { cause: { code } });
const failures: readonly Row[] = [
  ["something may be left", { failure: { error, isCleanup: true } }, "reportCleanupFailure"],
  ["which is reported", { failure: { error, isCleanup: true, isCleanupReported: true } }, "reportFailure"],
  [
    "of a claim that has vanished",
    { ...vanished, attempt: uncertain, failure: { error, isCleanup: true, isCleanupReported: true } },
    "retry",
  ],
  [
    "another component fills the volume",
    { failure: { error: new ProvisionError("Finished", "x", { ignored: true }) } },
    "reportIgnored",
  ],
  ["any failure", { failure: { error } }, "reportFailure"],
  ["any failure, reported", { failure: { error, isReported: true } }, "retry"],
  [
    "another node may do",
    {
      facts: { ...facts, selectedNode: "n", nodeFound: true },
      failure: { error: new ProvisionError("Reschedule", "x"), isReported: true },
    },
    "removeSelectedNode",
  ],
  [
    "another node may do, but none was chosen",
    { failure: { error: new ProvisionError("Reschedule", "x"), isReported: true } },
    "retry",
  ],
  [
    "a request that can never succeed",
    { failure: { error: refusedFor("INVALID_ARGUMENT"), isReported: true } },
    "retryLate",
  ],
  ["another refusal", { failure: { error: refusedFor("INTERNAL"), isReported: true } }, "retry"],
];

const tables = { beginnings, provisioning, endings, removals, others, failures };

describe.each(Object.entries(tables))("the steps over a claim: %s", (_, rows) => {
  it.each(rows)("%s", (_, observed, step) => {
    expect(decide({ ...fresh, ...observed }).step).toBe(step);
  });
});

describe("the decision for a claim", () => {
  const oneOf = <T>(...values: T[]) => fc.constantFrom(...values);
  const anyWork = fc.record({
    prepared: oneOf(undefined, prepared, cloned),
    secrets: oneOf(undefined, secrets),
    isSourceProtected: oneOf(undefined, true),
    isIntentStored: oneOf(undefined, true),
    isBeginReported: oneOf(undefined, true),
    made: oneOf(undefined, made),
    onServer: oneOf(undefined, "wanted", "gone"),
    stored: oneOf(undefined, "created", "taken"),
    removal: oneOf(undefined, {}, { isStored: true }, { isStored: false }, { isStored: false, secrets }),
    lookup: oneOf(undefined, { prepared, secrets, found: { volumeId: "vol-1" } }),
  }) as fc.Arbitrary<ClaimWork>;
  const anyFacts = fc.record({
    ours: fc.boolean(),
    deleting: fc.boolean(),
    bound: fc.boolean(),
    boundToOwn: fc.boolean(),
    intended: fc.boolean(),
    pvStored: fc.boolean(),
    pvForeign: fc.boolean(),
    pvOfDriver: fc.boolean(),
    classFound: fc.boolean(),
    delayed: fc.boolean(),
    selectedNode: oneOf(undefined, "n"),
    nodeFound: fc.boolean(),
    lastAnswer: oneOf("unknown", "uncertain", "final"),
  }) as fc.Arbitrary<ClaimFacts>;
  const anyObserved = fc
    .record({
      facts: anyFacts,
      work: anyWork,
      cached: oneOf(undefined, claim, going, other),
      attempt: oneOf(undefined, uncertain, final),
      isVanished: fc.boolean(),
      share: oneOf("owned" as const, "foreign" as const),
    })
    .map((some) => ({ ...fresh, ...some }));

  it("deletes no volume before the server has said that no object stands for it", () => {
    fc.assert(
      fc.property(anyObserved, (observed) => {
        return decide(observed).step !== "deleteVolume" || observed.work.removal?.isStored === false;
      }),
    );
  });

  it("looks for no volume of a vanished claim before the server has said that it is gone", () => {
    fc.assert(
      fc.property(anyObserved, (observed) => {
        const { step } = decide({ ...observed, isVanished: true });
        const isAllowed = observed.work.onServer === "gone" || observed.attempt?.lastAnswer !== "uncertain";
        return isAllowed || step === "confirmVanished" || step === "awaitCache";
      }),
    );
  });

  it("calls CreateVolume for a claim only with the intent on it", () => {
    fc.assert(
      fc.property(anyObserved, (observed) => {
        if (decide(observed).step !== "createVolume") return true;
        return observed.facts.intended || observed.work.isIntentStored === true;
      }),
    );
  });
});
