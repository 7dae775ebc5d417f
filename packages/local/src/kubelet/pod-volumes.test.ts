/** Volumes that need no provider, as pods of the cluster in this process see them. Source: docs/behaviour/pod-volumes.md. */
import { resources } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { onPodVolumesCluster } from "../testing/pod-volumes-cluster.ts";

const signal = new AbortController().signal;
const namespace = "default";
const base64 = (text: string) => Buffer.from(text).toString("base64");

describe("volumes of pods on the local cluster", () => {
  it("a pod gets an emptyDir, a ConfigMap and a Secret, and all of it goes with the pod", () =>
    onPodVolumesCluster(async ({ cluster, host, createPod, runs, deletePod }) => {
      const { kube } = cluster;
      const metadata = { name: "settings", namespace };
      await kube.create(resources.configMaps, { metadata, data: { "app.yaml": "a: 1" } }, { signal });
      await kube.create(resources.secrets, { metadata, data: { password: base64("hunter2") } }, { signal });
      const pod = await createPod("p", {
        volumes: [
          { name: "scratch", emptyDir: {} },
          { name: "config", configMap: { name: "settings" } },
          { name: "secret", secret: { secretName: "settings", defaultMode: 0o400 } },
        ],
      });
      const at = await runs("p");
      await host.writeFileAtomic(`${at("/scratch")}/f`, "x");
      expect(await host.readFile(`${at("/config")}/app.yaml`)).toBe("a: 1");
      expect(await host.readFile(`${at("/secret")}/password`)).toBe("hunter2");
      expect((await host.stat(`${at("/secret")}/..data/password`))?.mode).toBe(0o400);
      const directory = at("/scratch").slice(0, at("/scratch").indexOf(pod.metadata.uid));
      await deletePod("p");
      for (const path of [at("/scratch"), at("/config"), at("/secret")]) {
        expect(path).toContain(directory);
        expect(await host.stat(path)).toBeUndefined();
      }
    }));
});
