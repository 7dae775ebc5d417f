/** The metrics `pv_collector_*`. Source: docs/behaviour/controllers.md A11. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { type PersistentVolume, resources, startInformer } from "@longshore/kube";
import { recordingMeter } from "@longshore/runtime";
import { virtualEnv } from "@longshore/testing/kube";
import { expect, it } from "vitest";
import { createVolumePluginManager } from "../../framework/volume-plugin-manager.ts";
import { csiPlugin } from "../../plugins/csi/csi-plugin.ts";
import { controllerVolumeHost } from "../controller-volume-host.ts";
import { countBound } from "./bound-counts.ts";

const signal = new AbortController().signal;

it("volumes and claims are counted as they come, change and go, and nothing is left in the end", async () => {
  const meter = recordingMeter();
  const base = { ...virtualEnv(), meter };
  const env = { ...base, kube: createApiServer(base, { store: memoryStore() }).client() };
  const { kube, clock } = env;
  const volumes = startInformer(env, resources.persistentVolumes);
  const claims = startInformer(env, resources.persistentVolumeClaims);
  const plugins = await createVolumePluginManager(controllerVolumeHost(env), [csiPlugin()]);
  const end = countBound(meter, { volumes, claims }, plugins);
  const pv = (name: string, more: Partial<NonNullable<PersistentVolume["spec"]>>) => ({
    metadata: { name },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "1Gi" },
      storageClassName: "fast",
      ...more,
    },
  });
  const csi = { driver: "d.example", volumeHandle: "a" };
  const first = await kube.create(resources.persistentVolumes, pv("a", { csi }), { signal });
  await kube.create(resources.persistentVolumes, pv("b", { hostPath: { path: "/b" } }), { signal });
  const claim = await kube.create(
    resources.persistentVolumeClaims,
    {
      metadata: { name: "c", namespace: "default" },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
    },
    { signal },
  );
  await clock.advance(1000);
  const counts = () => [
    meter.value("pv_collector_bound_pv_count", { storage_class: "fast" }) ?? 0,
    meter.value("pv_collector_unbound_pv_count", { storage_class: "fast" }) ?? 0,
    meter.value("pv_collector_bound_pvc_count", { namespace: "default" }) ?? 0,
    meter.value("pv_collector_unbound_pvc_count", { namespace: "default" }) ?? 0,
  ];
  const total = (plugin_name: string) =>
    meter.value("pv_collector_total_pv_count", { plugin_name, volume_mode: "Filesystem" }) ?? 0;
  expect(counts()).toEqual([0, 2, 0, 1]);
  expect([total("kubernetes.io/csi:d.example"), total("N/A")]).toEqual([1, 1]);

  await kube.updateStatus(resources.persistentVolumes, { ...first, status: { phase: "Bound" } }, { signal });
  await kube.updateStatus(
    resources.persistentVolumeClaims,
    { ...claim, status: { phase: "Bound" } },
    { signal },
  );
  await clock.advance(1000);
  expect(counts()).toEqual([1, 1, 1, 0]);
  expect(total("kubernetes.io/csi:d.example")).toBe(1);

  // Nothing here takes its protection off.
  const unprotected = { type: "merge", body: { metadata: { finalizers: null } } } as const;
  await kube.patch(resources.persistentVolumes, { name: "b" }, unprotected, { signal });
  await kube.delete(resources.persistentVolumes, { name: "b" }, { signal });
  await clock.advance(1000);
  expect(counts()).toEqual([1, 0, 1, 0]);
  expect(total("N/A")).toBe(0);

  end();
  expect(counts()).toEqual([0, 0, 0, 0]);
  expect(total("kubernetes.io/csi:d.example")).toBe(0);
  await volumes.stop();
  await claims.stop();
});
