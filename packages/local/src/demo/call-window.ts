/**
 * Counts the in-tree calls that the disk cloud saw of a plugin when none should have come: for a node from its
 * flip until it begins to return, for the whole cluster from the last flip until the return begins.
 * Pure.
 */
import type { CrossingMark } from "@longshore/migration";
import type { CountedCall } from "../cluster/observed-cluster.ts";

/** A mark and the number of the last call that the cloud had seen when it was made. */
export interface PlacedMark {
  readonly mark: CrossingMark;
  readonly seq: number;
}

/** In-tree calls inside the windows that the marks open and close. */
export function inTreeCallsInWindows(
  calls: readonly CountedCall[],
  marks: readonly PlacedMark[],
  instanceOf: (nodeName: string) => string | undefined,
): CountedCall[] {
  return callsInWindows(calls, marks, instanceOf).filter((call) => call.path === "in-tree");
}

/**
 * Whether an attach/detach controller that was started again asks what is attached: the crossing of another plugin restarts
 * it, and it asks while a volume of this one is not attached by CSI (docs/contract.md C5). It changes nothing.
 */
export const isListingOfRestart = ({ component, op }: CountedCall): boolean =>
  component === "attach-detach-controller" && (op === "listInstances" || op === "listDisks");

/** The driver's calls inside the windows: none would mean that nothing was put to the test there. */
export function csiCallsInWindows(
  calls: readonly CountedCall[],
  marks: readonly PlacedMark[],
  instanceOf: (nodeName: string) => string | undefined,
): CountedCall[] {
  return callsInWindows(calls, marks, instanceOf).filter((call) => call.path === "csi");
}

/**
 * Why counting would prove nothing: a window that was never opened or closed, or calls that the log has
 * dropped since. Empty when all that is to be counted is there.
 */
export function gapsInProof(
  calls: readonly CountedCall[],
  marks: readonly PlacedMark[],
  nodeNames: readonly string[],
  plugins: readonly string[],
): string[] {
  const unmarked = plugins.flatMap((plugin) => {
    const own = marks.filter(({ mark }) => mark.plugin === plugin);
    const has = (kind: CrossingMark["kind"], nodeName?: string) =>
      own.some(({ mark }) => mark.kind === kind && (!("nodeName" in mark) || mark.nodeName === nodeName));
    return [
      ...(["clusterMigrated", "clusterReturning"] as const).filter((kind) => !has(kind)),
      ...nodeNames.flatMap((name) =>
        (["nodeMigrated", "nodeReturning"] as const)
          .filter((kind) => !has(kind, name))
          .map((kind) => `${kind} of ${name}`),
      ),
    ].map((what) => `the crossing of ${plugin} did not say ${what}`);
  });
  const dropped = calls[0]?.seq === 1 ? [] : ["the disk cloud's log does not go back to its first call"];
  return [...unmarked, ...dropped];
}

function callsInWindows(
  calls: readonly CountedCall[],
  marks: readonly PlacedMark[],
  instanceOf: (nodeName: string) => string | undefined,
): CountedCall[] {
  const windows = windowsOf(marks, instanceOf);
  return calls.filter((call) =>
    windows.some(
      (w) =>
        call.seq > w.from &&
        call.seq <= w.to &&
        w.plugin === pluginCalled(call) &&
        (w.instanceId === undefined || w.instanceId === call.instanceId),
    ),
  );
}

/** In-tree name of the plugin whose provider was called. */
export const pluginCalled = ({ provider = "aws-ebs" }: CountedCall): string => `kubernetes.io/${provider}`;

interface Window {
  /** In-tree name: a crossing leaves other plugins where they are. */
  readonly plugin: string;
  /** Undefined: all instances. */
  readonly instanceId: string | undefined;
  readonly from: number;
  readonly to: number;
}

function windowsOf(
  marks: readonly PlacedMark[],
  instanceOf: (nodeName: string) => string | undefined,
): Window[] {
  return marks.flatMap(({ mark, seq }, index): Window[] => {
    const { plugin } = mark;
    const end = (closes: (m: CrossingMark) => boolean) =>
      marks.slice(index + 1).find((later) => later.mark.plugin === plugin && closes(later.mark))?.seq ??
      Number.POSITIVE_INFINITY;
    if (mark.kind === "clusterMigrated") {
      return [{ plugin, instanceId: undefined, from: seq, to: end((m) => m.kind === "clusterReturning") }];
    }
    if (mark.kind !== "nodeMigrated") return [];
    const to = end((m) => m.kind === "nodeReturning" && m.nodeName === mark.nodeName);
    return [{ plugin, instanceId: instanceOf(mark.nodeName) ?? mark.nodeName, from: seq, to }];
  });
}
