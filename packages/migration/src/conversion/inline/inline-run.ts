/** Carries the inline volumes of workloads, several at the same time. */
import { join } from "node:path";
import type { KubeClient } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { patiently } from "../../crossing/patience.ts";
import type { ConversionEnv, ConversionRunOptions } from "../conversion-options.ts";
import type { ConversionResult } from "../conversion-run.ts";
import { workloadResource } from "../observe-volume.ts";
import { unitJournal } from "../units/unit-journal.ts";
import { carryUnit } from "../units/unit-run.ts";
import { inlineJournals, templateKey } from "./inline-journal.ts";
import { inlineKind } from "./inline-kind.ts";
import { type InlineJournal, templateName } from "./inline-types.ts";
import { watchInlineUsers } from "./inline-users.ts";

/**
 * Runs them, or resumes them: several at the same time, at most as many as batches allow. After a failure none is begun.
 * @throws the signal's reason
 */
export async function runInlineConversion(
  env: ConversionEnv,
  journals: readonly InlineJournal[],
  options: ConversionRunOptions,
  signal: AbortSignal,
): Promise<ConversionResult> {
  const { parallel = 1, batch = Number.POSITIVE_INFINITY, pauseAfter = Number.POSITIVE_INFINITY } = options;
  const startMs = env.clock.monotonicMs();
  const converted: { volume: string; requests: number }[] = [];
  const failed: { volume: string; error: unknown }[] = [];
  const limit = Math.min(journals.length, batch * pauseAfter);
  let next = 0;
  if (limit > 0) {
    await env.host.makeDirectory(join(options.journalDir, inlineJournals.label));
    const users = await watchInlineUsers(env, signal);
    const kind = inlineKind(env.clock, users);
    const worker = async () => {
      for (;;) {
        const journal = journals[next];
        if (journal === undefined || next >= limit || failed.length > 0 || signal.aborted) return;
        next++;
        const volume = templateName(journal.planned);
        const storeOf = (kube: KubeClient) =>
          unitJournal(
            { kube, host: env.host, dir: options.journalDir },
            inlineJournals,
            templateKey(journal.planned),
          );
        try {
          await save(env, journal, options, signal);
          const { requests } = await carryUnit(
            env,
            { kind, name: volume, journal, storeOf },
            options,
            signal,
          );
          converted.push({ volume, requests });
        } catch (error) {
          // An interruption is no failure of the workload.
          if (signal.aborted) throw signal.reason;
          failed.push({ volume, error });
          options.onEvent?.({ kind: "volumeFailed", volume, error: errorChain(error) });
        }
      }
    };
    try {
      await Promise.all(Array.from({ length: Math.min(parallel, limit) }, worker));
    } finally {
      await users.stop();
    }
    signal.throwIfAborted();
  }
  const left = journals.slice(next).map(({ planned }) => templateName(planned));
  return { converted, failed, left, elapsedMs: Math.round(env.clock.monotonicMs() - startMs) };
}

/** Saves the workload as it is before its template is changed. */
async function save(
  { clock, host, kube }: ConversionEnv,
  { planned }: InlineJournal,
  { backupDir }: ConversionRunOptions,
  signal: AbortSignal,
): Promise<void> {
  if (backupDir === undefined) return;
  const dir = join(backupDir, "templates");
  const path = join(dir, `${templateKey(planned)}.json`);
  await host.makeDirectory(dir);
  // That of an earlier run is older, and so is what it shows.
  if ((await host.stat(path)) !== undefined) return;
  const { workload } = planned;
  const stored = await patiently(
    clock,
    () => {},
    signal,
    () => kube.get(workloadResource(workload), workload, { signal }),
  );
  if (stored === undefined) return;
  await host.writeFileAtomic(path, `${JSON.stringify(stored, undefined, 2)}\n`, { mode: 0o600 });
}
