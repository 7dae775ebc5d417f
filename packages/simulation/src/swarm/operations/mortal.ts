/** What an administrator runs, as a process that can be killed between two of its calls. */
import type { KubeClient } from "@longshore/kube";
import type { Platform } from "@longshore/migration";
import { type Clock, type Host, noMeter, type Random, silentLogger } from "@longshore/runtime";
import { type CallGate, Life } from "../../cut.ts";
import type { Operators } from "./operators.ts";

/** What such a process has. */
export interface AdministratorEnv {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: typeof silentLogger;
  readonly meter: typeof noMeter;
  readonly kube: KubeClient;
  readonly host: Host;
  readonly platform: Platform;
}

const open: CallGate = (_call, proceed) => proceed();

/**
 * Runs it and kills the first run after this time, in milliseconds: nothing of it goes on, and what it holds, such as a lease, stays
 * held. The runs after it are let live. The name is that of the operation's draw. The host is the machine of all of them, with their journals.
 */
export function killedOnce(
  { env: { clock, cluster, random }, signal }: Operators,
  name: string,
  host: Host,
  killMs: number,
  run: (env: AdministratorEnv, signal: AbortSignal) => Promise<void>,
): () => Promise<void> {
  let runs = 0;
  return async () => {
    runs++;
    const life = new Life("administrator", open);
    const env: AdministratorEnv = {
      clock: life.time(clock),
      random: random.fork(`administrator ${runs} of ${name}`),
      logger: silentLogger,
      meter: noMeter,
      kube: life.seam("kube", cluster.kube),
      host: life.seam("host", host),
      // What the cluster does at its word is done, whether or not it lives to see it.
      platform: life.seam("kube", cluster.platform),
    };
    const work = run(env, signal);
    if (runs > 1) return work;
    const done = new AbortController();
    const killed = clock.sleep(killMs, done.signal).then(
      () => {
        life.cut();
        throw new Error("killed");
      },
      () => {},
    );
    try {
      await Promise.race([work, killed.then(() => work)]);
    } finally {
      done.abort(new Error("done"));
    }
  };
}
