/**
 * The controllers of distributions under their own accounts, with exactly the rights that their deployment grants, through a whole
 * cycle of their work on the embedded API server: nothing may be refused. Then once more without each single right, also without each
 * single name: something must be refused, or the right is not needed.
 */
import { fileURLToPath } from "node:url";
import { createApiServer, memoryStore, readDefinitions } from "@longshore/apiserver";
import {
  type AccessRule,
  planDistribution,
  renderDistribution,
  renderDistributionAccess,
} from "@longshore/deployment";
import { type KubeObject, resources } from "@longshore/kube";
import { gardenerCrdsUrl } from "@longshore/migration/gardener";
import { openshiftCrdsUrl } from "@longshore/migration/openshift";
import {
  noMeter,
  type RuntimeEnv,
  SeededRandom,
  silentLogger,
  stopAll,
  VirtualClock,
} from "@longshore/runtime";
import { type AccessLog, watchedClient } from "@longshore/testing/deployment";
import { describe, expect, test } from "vitest";
import { resourceOf } from "../../../packages/deployment/src/deployed-kinds.ts";
import { type DistributionCycle, distributionCycles, distributionNamespace } from "./distribution-cycles.ts";

const definitions = await readDefinitions(
  [openshiftCrdsUrl, gardenerCrdsUrl].map((url) => fileURLToPath(url)),
);

/** A request of the cycle was refused: it can stop. */
class RefusedError extends Error {
  override readonly name = "RefusedError";
}

/** Runs the cycle with these rights. @returns what the controller was refused */
async function runCycle(cycle: DistributionCycle, rules?: readonly AccessRule[]): Promise<readonly string[]> {
  const clock = new VirtualClock();
  const runtime: RuntimeEnv = { clock, random: new SeededRandom(7), logger: silentLogger, meter: noMeter };
  const server = createApiServer(runtime, { store: memoryStore(), definitions });
  const { signal } = new AbortController();
  const admin = server.client();
  const plan = planDistribution({ ...cycle.options, namespace: distributionNamespace });
  const access = renderDistributionAccess(plan, rules);
  const others = renderDistribution(plan).filter(({ object: { kind = "" } }) =>
    /^(Namespace|ServiceAccount)$/.test(kind),
  );
  for (const { object } of [...others, ...access]) await admin.create(resourceOf(object), object, { signal });
  const account = { namespace: plan.namespace, name: plan.name };
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} } as KubeObject;
  const answer = await admin.createSubresource(resources.serviceAccounts, account, "token", request, {
    signal,
  });
  const { token } = (answer as unknown as { readonly status: { readonly token: string } }).status;
  const user = server.authenticate({ authorization: `Bearer ${token}`, certificate: undefined });
  const log: AccessLog = { asked: new Set(), refused: [] };
  const components: { stop(): Promise<void> }[] = [];
  try {
    await cycle.run({
      admin,
      signal,
      env: { ...runtime, kube: watchedClient(server.client(await user), log) },
      start(component) {
        components.push(component);
        return component;
      },
      async eventually(what, condition) {
        for (let waited = 0; waited < 1200; waited++) {
          await clock.settle();
          if (log.refused.length > 0) throw new RefusedError(log.refused[0]);
          const found = await condition();
          if (found !== undefined && found !== false) return found;
          await clock.advance(250);
        }
        throw new Error(`${plan.name}: never: ${what}`);
      },
    });
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
  } finally {
    await clock.run(stopAll(components));
    await server.stop();
  }
  return log.refused;
}

/** The rules without one verb of one of them, or one name; each with what is missing. */
function lesser(rules: readonly AccessRule[]): readonly (readonly [string, readonly AccessRule[]])[] {
  return rules.flatMap((rule, index) => {
    const text = `${rule.resource}${rule.group === "" ? "" : `.${rule.group}`}`;
    const instead = (other: AccessRule) => rules.map((one, at) => (at === index ? other : one));
    const byVerb = rule.verbs.map((verb) => {
      const verbs = rule.verbs.filter((one) => one !== verb);
      const left = verbs.length === 0 ? rules.filter((one) => one !== rule) : instead({ ...rule, verbs });
      return [`${verb} ${text}`, left] as const;
    });
    const byName = (rule.names ?? []).map((name, _, all) => {
      const names = all.filter((one) => one !== name);
      const left = names.length === 0 ? rules.filter((one) => one !== rule) : instead({ ...rule, names });
      return [`${rule.verbs} ${text} ${name}`, left] as const;
    });
    return [...byVerb, ...byName];
  });
}

describe.each(distributionCycles)("$options.controller", (cycle) => {
  test("under its own account nothing is refused", async () => {
    expect(await runCycle(cycle)).toEqual([]);
  });

  const { rules } = planDistribution(cycle.options);
  test.each(lesser(rules))("without %s something is refused", async (_, left) => {
    expect(await runCycle(cycle, left)).not.toEqual([]);
  });
});
