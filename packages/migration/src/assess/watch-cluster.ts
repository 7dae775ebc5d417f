/**
 * Follows a cluster and judges it again when something has changed that a rule looks at: at most once in `everyMs`, however
 * many changes there were, and at least once in `atLeastEveryMs`, since some findings come with time. A judgement looks at the whole
 * cluster, so the pause after it is also a multiple of the time that it took: judging takes a bounded share of one core.
 *
 *     informers ──change──▶ dirty ──pause──▶ inventory of the caches ──▶ assess ──▶ onAssessment(assessment, changes)
 */
import { isDeepStrictEqual } from "node:util";
import {
  ComponentScope,
  type Informer,
  KubeApiError,
  type KubeEnv,
  type KubeObject,
  type Stored,
  startInformer,
} from "@longshore/kube";
import { foreignText, withAnyOf } from "@longshore/runtime";
import { type Assessment, type AssessOptions, assess } from "./assess.ts";
import { type Changes, changesBetween } from "./assessment-diff.ts";
import { found, type RuleFinding } from "./assessment-finding.ts";
import { InventoryBuilder } from "./inventory-builder.ts";
import type { InventoryKind } from "./inventory-kinds.ts";
import type { TemplatePath } from "./template-paths.ts";

/** What is followed, and how often it is judged. */
export interface WatchClusterOptions extends AssessOptions {
  /** Custom resources with templates of pods. */
  readonly templates?: readonly TemplatePath[];
  /** Time between two judgements at least, in milliseconds; default 5000. It is longer where a judgement takes a tenth of it. */
  readonly everyMs?: number;
  /** Time between two judgements at most, in milliseconds; default 60,000. */
  readonly atLeastEveryMs?: number;
  /** Is called with the first assessment and with each that has changed; `changes` is undefined for the first. */
  onAssessment(assessment: Assessment, changes: Changes | undefined): void;
}

/** Judging takes at most this share of the time. */
const judgeShare = 0.1;

interface Followed {
  readonly kind: InventoryKind;
  readonly informer: Informer<KubeObject>;
}

/**
 * Follows the cluster until `signal` aborts, and rejects with its reason. What may not be read is a gap of every assessment.
 * @throws what the client throws when the server cannot be reached at the beginning
 */
export async function watchCluster(
  env: KubeEnv,
  options: WatchClusterOptions,
  signal: AbortSignal,
): Promise<never> {
  const { everyMs = 5000, atLeastEveryMs = 60_000, templates = [] } = options;
  const scope = new ComponentScope((error) => env.logger.error("following the cluster failed", { error }));
  let dirty = true;
  let wake: () => void = () => {};
  const change = () => {
    dirty = true;
    wake();
  };
  try {
    const { followed, gaps, unread } = await follow(env, templates, scope, change, signal);
    for (const { informer } of followed) await informer.synced(signal);
    let before: Assessment | undefined;
    for (;;) {
      dirty = false;
      const startMs = env.clock.monotonicMs();
      const assessment = judged(env, options, followed, { gaps, unread });
      const changes = before === undefined ? undefined : changesBetween(before, assessment);
      const isSame =
        changes?.added.length === 0 && changes.gone.length === 0 && sameVerdicts(before, assessment);
      if (!isSame) options.onAssessment(assessment, changes);
      before = assessment;
      const pauseMs = Math.max(everyMs, (env.clock.monotonicMs() - startMs) / judgeShare);
      await env.clock.sleep(pauseMs, signal);
      if (dirty) continue;
      const changed = new AbortController();
      wake = () => changed.abort();
      await withAnyOf([signal, changed.signal], (either) =>
        env.clock.sleep(Math.max(0, atLeastEveryMs - pauseMs), either),
      ).catch(() => signal.throwIfAborted());
    }
  } finally {
    await scope.stop();
  }
}

function sameVerdicts(before: Assessment | undefined, after: Assessment): boolean {
  return before?.verdict === after.verdict && before.targetVerdict === after.targetVerdict;
}

/** Asks for one object of each kind first: an informer would ask again for ever for what it may not read. */
async function follow(
  env: KubeEnv,
  templates: readonly TemplatePath[],
  scope: ComponentScope,
  change: () => void,
  signal: AbortSignal,
) {
  const followed: Followed[] = [];
  const gaps: RuleFinding[] = [];
  const unread = new Set<string>();
  for (const kind of new InventoryBuilder(templates).kinds) {
    const { resource } = kind;
    try {
      await env.kube.list(resource, { signal, limit: 1 });
    } catch (error) {
      if (!(error instanceof KubeApiError)) throw error;
      if (error.code === 404 && kind.isNamed !== true) continue;
      unread.add(resource.kind);
      const evidence = `list ${resource.plural}: ${foreignText(error.message)}`;
      const severity = kind.essential ? "unknown" : "warning";
      gaps.push(found("LS1001", { object: `kind ${resource.kind}`, evidence, severity }));
      continue;
    }
    const informer = startInformer(env, resource, {
      ...(kind.fieldSelector === undefined ? {} : { fieldSelector: kind.fieldSelector }),
      transform: (object) => kept(kind, object),
    });
    informer.onChange({
      added: change,
      deleted: change,
      // Most updates are heartbeats: of what is kept nothing has changed.
      updated: (before, after) => {
        if (!isDeepStrictEqual(withoutVersion(before), withoutVersion(after))) change();
      },
    });
    scope.own(informer);
    followed.push({ kind, informer });
  }
  return { followed, gaps, unread };
}

/** What the rules look at, and what the cache itself needs of an object. */
function kept(kind: InventoryKind, object: Stored): Stored {
  const { uid, resourceVersion } = object.metadata;
  if (kind.isKept?.(object) === false)
    return { kind: "", metadata: { ...named(object), uid, resourceVersion } } as Stored;
  const typed = { ...object, kind: object.kind ?? kind.resource.kind };
  const small = kind.keep(typed) as Stored & { status?: { conditions?: unknown } };
  const metadata = { ...small.metadata, uid, resourceVersion };
  // The conditions of nodes are for the status of a cluster.
  return kind.list === "nodes"
    ? ({ ...small, metadata, status: { ...small.status, conditions: undefined } } as Stored)
    : { ...small, metadata };
}

function named({ metadata: { name, namespace } }: Stored): object {
  return namespace === undefined ? { name } : { name, namespace };
}

function withoutVersion({ metadata: { resourceVersion: _version, ...metadata }, ...rest }: Stored): object {
  return { metadata, ...rest };
}

function judged(
  env: KubeEnv,
  options: WatchClusterOptions,
  followed: readonly Followed[],
  { gaps, unread }: { readonly gaps: readonly RuleFinding[]; readonly unread: ReadonlySet<string> },
): Assessment {
  const builder = new InventoryBuilder();
  builder.gaps.push(...gaps);
  for (const kind of unread) builder.unread.add(kind);
  for (const { kind, informer } of followed) {
    for (const object of informer.list()) if (object.kind !== "") builder.addKept(kind, object);
  }
  return assess(builder.build(env.clock.now()), options);
}
