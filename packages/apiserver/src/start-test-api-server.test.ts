/** The helper as a test of a controller uses it: any client, several servers at a time, nothing left. */
import { createHttpClient, loadKubeconfig, resources } from "@longshore/kube";
import { noMeter, SimulatedHost, silentLogger, systemClock, systemRandom } from "@longshore/runtime";
import { expect, test } from "vitest";
import { startTestApiServer } from "./start-test-api-server.ts";

const { signal } = new AbortController();
const settings = { metadata: { name: "settings", namespace: "default" }, data: { colour: "blue" } };

test("its client and a client of its kubeconfig see the same objects, another server has others", async () => {
  const [api, other] = await Promise.all([
    startTestApiServer(),
    startTestApiServer({ emulatedVersion: "1.20" }),
  ]);
  await api.client.create(resources.configMaps, settings, { signal });

  const host = new SimulatedHost();
  await host.makeDirectory("/home");
  await host.writeFileAtomic("/home/kubeconfig", api.kubeconfig);
  const env = { clock: systemClock, random: systemRandom, logger: silentLogger, meter: noMeter };
  const byFile = createHttpClient(env, await loadKubeconfig(host, { path: "/home/kubeconfig" }));
  const found = await byFile.get(resources.configMaps, settings.metadata, { signal });
  expect(found?.data).toEqual({ colour: "blue" });
  expect(await other.client.get(resources.configMaps, settings.metadata, { signal })).toBeUndefined();

  await byFile.close();
  await Promise.all([api.stop(), other.stop()]);
  await expect(fetch(api.url)).rejects.toThrow();
});
