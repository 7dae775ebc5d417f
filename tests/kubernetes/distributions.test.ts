/**
 * The controllers of Gardener and OpenShift on the real API server: what `longshore deploy` renders is taken as it is, and each
 * controller goes through a cycle of its work under the token of its own account, with the rights that its deployment grants.
 * One refusal fails the test.
 */
import { fileURLToPath } from "node:url";
import { planDistribution, renderDistribution } from "@longshore/deployment";
import { type HttpKubeClient, resources } from "@longshore/kube";
import { gardenerCrdsUrl } from "@longshore/migration/gardener";
import { openshiftCrdsUrl } from "@longshore/migration/openshift";
import { stopAll } from "@longshore/runtime";
import { type AccessLog, watchedClient } from "@longshore/testing/deployment";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readDefinitions } from "../../packages/apiserver/src/http/read-definitions.ts";
import { resourceOf } from "../../packages/deployment/src/deployed-kinds.ts";
import { distributionCycles, distributionNamespace } from "../components/deployment/distribution-cycles.ts";
import {
  type ControlPlane,
  connectAs,
  connectAsAccount,
  eventually,
  realEnv,
  signal,
  startControlPlane,
} from "./support/index.ts";

let kubernetes: ControlPlane;
let admin: HttpKubeClient;

beforeAll(async () => {
  kubernetes = await startControlPlane();
  admin = await connectAs(kubernetes);
  const paths = [openshiftCrdsUrl, gardenerCrdsUrl].map((url) => fileURLToPath(url));
  for (const definition of await readDefinitions(paths)) {
    const url = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const { status, body } = await kubernetes.call("POST", url, definition);
    expect(status, JSON.stringify(body)).toBe(201);
    const { spec } = definition as {
      readonly spec?: { group: string; names: { plural: string }; versions: { name: string }[] };
    };
    await eventually(`${spec?.names.plural} are served`, async () => {
      const path = `/apis/${spec?.group}/${spec?.versions[0]?.name}/${spec?.names.plural}`;
      return (await kubernetes.call("GET", path)).status === 200 || undefined;
    });
  }
  await eventually("the default namespace is there", () =>
    admin.get(resources.namespaces, { name: "default" }, { signal }),
  );
});
afterAll(async () => {
  await admin?.close();
  await kubernetes?.stop();
});

describe.each(distributionCycles)("$options.controller", (cycle) => {
  const plan = planDistribution({
    ...cycle.options,
    namespace: distributionNamespace,
    kubernetesVersion: "1.20",
  });
  const account = { namespace: plan.namespace, name: plan.name };

  test("what is rendered is taken, and nothing of it is dropped", async () => {
    for (const { object } of renderDistribution(plan)) {
      const { name = "", namespace } = object.metadata ?? {};
      const ref = namespace === undefined ? { name } : { name, namespace };
      const apply = { type: "apply", body: object, fieldManager: "longshore", force: true } as const;
      expect(await admin.patch(resourceOf(object), ref, apply, { signal })).toMatchObject(object);
    }
  });

  test("under its own account nothing is refused", async () => {
    const own = await connectAsAccount(kubernetes, admin, account);
    const log: AccessLog = { asked: new Set(), refused: [] };
    const components: { stop(): Promise<void> }[] = [];
    try {
      await cycle.run({
        admin,
        signal,
        env: { ...realEnv, kube: watchedClient(own, log) },
        start(component) {
          components.push(component);
          return component;
        },
        eventually: (what, condition) =>
          eventually(what, async () => {
            if (log.refused.length > 0) throw new Error(log.refused.join("\n"));
            const found = await condition();
            return found === false ? undefined : found;
          }) as never,
      });
    } finally {
      await stopAll(components);
      await own.close();
    }
    expect(log.refused).toEqual([]);
  });
});
