/** Volumes that need no provider, as pods of the cluster in this process see them. Source: docs/behaviour/pod-volumes.md. */
import { resources } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { onPodVolumesCluster } from "../testing/pod-volumes-cluster.ts";

const signal = new AbortController().signal;
const namespace = "default";
const base64 = (text: string) => Buffer.from(text).toString("base64");

describe("volumes of pods on the local cluster", () => {
  it("a pod gets an emptyDir, a ConfigMap and a Secret, and all of it goes with the pod (pod-volumes.md 2.1, 3.1)", () =>
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

describe("an emptyDir with a sizeLimit", () => {
  it("that holds more has its pod evicted, saying so; one that holds as much has not (pod-volumes.md 2.3)", () =>
    onPodVolumesCluster(async ({ clock, cluster, host, createPod, runs, until, warnings }) => {
      const volumes = [{ name: "scratch", emptyDir: { sizeLimit: "1Ki" } }];
      const atLimit = await createPod("small", { volumes });
      await host.writeFileAtomic(`${(await runs("small"))("/scratch")}/f`, "x".repeat(1024));
      const pod = await createPod("large", { volumes });
      const path = (await runs("large"))("/scratch");
      await host.writeFileAtomic(`${path}/f`, "x".repeat(1025));
      const statusOf = async (name: string) =>
        (await cluster.kube.get(resources.pods, { namespace, name }, { signal }))?.status;
      await until("evicted", async () => (await statusOf("large"))?.phase === "Failed");
      const message = 'Usage of EmptyDir volume "scratch" exceeds the limit "1Ki".';
      expect(await statusOf("large")).toMatchObject({ reason: "Evicted", message });
      expect((await statusOf("large"))?.containerStatuses?.[0]?.state?.terminated).toBeDefined();
      await until("said", async () => (await warnings("large")).includes(message));
      await until("emptied", async () => (await host.stat(path)) === undefined);
      await clock.sleep(180_000, signal);
      expect((await statusOf("small"))?.phase).toBe("Running");
      expect(atLimit.metadata.uid).not.toBe(pod.metadata.uid);
    }));
});

describe("sub-paths (docs/behaviour/pod-volumes.md 9)", () => {
  const scratch = { name: "scratch", emptyDir: {} };
  const mount = (subPath: string, mountPath = "/part") => ({ name: "scratch", mountPath, subPath });

  it("a container sees a part, which is made where it is missing, and both go with the pod (pod-volumes.md 9.1, 9.4)", () =>
    onPodVolumesCluster(async ({ host, createPod, runs, deletePod }) => {
      const whole = { name: "scratch", mountPath: "/whole" };
      await createPod("p", { volumes: [scratch], mounts: [mount("logs/today"), whole] });
      const at = await runs("p");
      await host.writeFileAtomic(`${at("/part")}/f`, "x");
      expect(await host.readFile(`${at("/whole")}/logs/today/f`)).toBe("x");
      expect((await host.stat(`${at("/whole")}/logs`))?.mode).toBe(0o777);
      expect(at("/part")).toMatch(/\/volume-subpaths\/scratch\/main\/0$/);
      await deletePod("p");
      expect(await host.stat(at("/part"))).toBeUndefined();
      expect(await host.listMounts(at("/part").slice(0, at("/part").indexOf("/volume-subpaths")))).toEqual(
        [],
      );
    }));

  it("a part may be a file, and be named by a variable (pod-volumes.md 9.1, 9.2)", () =>
    onPodVolumesCluster(async ({ cluster, host, createPod, runs }) => {
      const metadata = { name: "settings", namespace };
      await cluster.kube.create(resources.configMaps, { metadata, data: { p: "of p" } }, { signal });
      const env = [{ name: "POD", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }];
      await createPod("p", {
        volumes: [{ name: "config", configMap: { name: "settings" } }],
        mounts: [{ name: "config", mountPath: "/etc/app.yaml", subPathExpr: "$(POD)" }],
        container: { env },
      });
      const at = await runs("p");
      expect(await host.readFile(at("/etc/app.yaml"))).toBe("of p");
    }));

  it("a link that leads out of the volume keeps the container from starting, and one sentence says why (pod-volumes.md 9.3)", () =>
    onPodVolumesCluster(async (world) => {
      const { host, createPod, runs, warnings, until } = world;
      await host.makeDirectory("/srv");
      await host.makeDirectory("/secrets");
      await host.symlink("/secrets", "/srv/out");
      const volumes = [{ name: "scratch", hostPath: { path: "/srv" } }];
      await createPod("p", { volumes, mounts: [mount("out/new")] });
      const sentence =
        'volume "scratch", sub-path "out/new" of container main: a link in it leads out of the volume: correct the link, or mount the volume whole';
      await until("a warning", async () => (await warnings("p")).includes(sentence));
      expect(world.started.has("p")).toBe(false);
      expect(await host.readDirectory("/secrets")).toEqual([]);
      await host.removeFile("/srv/out");
      await runs("p");
      expect((await host.stat("/srv/out/new"))?.kind).toBe("directory");
    }));

  it("parts that an earlier agent has bound go with the pod (pod-volumes.md 9.4)", () =>
    onPodVolumesCluster(async ({ cluster, host, createPod, runs, deletePod }) => {
      await host.makeDirectory("/srv");
      const volumes = [scratch, { name: "h", hostPath: { path: "/srv" } }];
      const mounts = [mount("a"), { name: "h", mountPath: "/h", subPath: "b" }];
      const pod = await createPod("p", { volumes, mounts });
      const at = await runs("p");
      await cluster.restart(cluster.config.nodes[0]?.name ?? "");
      await deletePod("p");
      const podDir = at("/part").slice(0, at("/part").indexOf(pod.metadata.uid) + pod.metadata.uid.length);
      expect(await host.listMounts(podDir)).toEqual([]);
      expect(await host.readDirectory(`${podDir}/volume-subpaths`)).toEqual([]);
      expect(await host.readDirectory("/srv")).toEqual(["b"]);
    }));

  it("a disk whose part a container has had is unmounted and detached (pod-volumes.md 9.4)", () =>
    onPodVolumesCluster(async ({ cluster, host, createPod, runs, deletePod, until }) => {
      const { kube } = cluster;
      const classes = await kube.list(resources.storageClasses, { signal });
      const claim = {
        metadata: { name: "data", namespace },
        spec: {
          accessModes: ["ReadWriteOnce"],
          storageClassName: classes.items[0]?.metadata.name ?? "",
          resources: { requests: { storage: "1Gi" } },
        },
      };
      await kube.create(resources.persistentVolumeClaims, claim, { signal });
      const volumes = [{ name: "scratch", persistentVolumeClaim: { claimName: "data" } }];
      await createPod("p", { volumes, mounts: [mount("db")] });
      const at = await runs("p");
      await host.writeFileAtomic(`${at("/part")}/f`, "x");
      await deletePod("p");
      expect((await host.listMounts("/n")).filter(({ target }) => target.includes("volume"))).toEqual([]);
      const node = { name: cluster.config.nodes[0]?.name ?? "" };
      await until("detached", async () => {
        const status = (await kube.get(resources.nodes, node, { signal }))?.status;
        return (status?.volumesAttached ?? []).length === 0;
      });
      await createPod("q", { volumes, mounts: [mount("db")] });
      const again = await runs("q");
      expect(await host.readFile(`${again("/part")}/f`)).toBe("x");
    }));
});

describe("updates", () => {
  it("a pod gets a token of its account by the rights of its node alone, and a newer one in time (pod-volumes.md 6.1, 6.3)", () =>
    onPodVolumesCluster(async ({ clock, cluster, host, createPod, runs }) => {
      const account = { metadata: { name: "app", namespace } };
      await cluster.kube.create(resources.serviceAccounts, account, { signal });
      const token = { serviceAccountToken: { expirationSeconds: 600, path: "token" } };
      await createPod("p", {
        volumes: [{ name: "access", projected: { sources: [token] } }],
        spec: { serviceAccountName: "app" },
      });
      const at = await runs("p");
      const first = await host.readFile(`${at("/access")}/token`);
      expect(first?.split(".")).toHaveLength(3);
      await clock.sleep(500_000, signal);
      expect(await host.readFile(`${at("/access")}/token`)).not.toBe(first);
    }));

  it("a running pod sees a changed ConfigMap within a second, by the rights of its node alone (pod-volumes.md 5.2)", () =>
    onPodVolumesCluster(async ({ clock, cluster, host, createPod, runs }) => {
      const { kube } = cluster;
      const metadata = { name: "settings", namespace };
      await kube.create(resources.configMaps, { metadata, data: { a: "1" } }, { signal });
      await createPod("p", { volumes: [{ name: "config", configMap: { name: "settings" } }] });
      const at = await runs("p");
      await kube.patch(
        resources.configMaps,
        metadata,
        { type: "merge", body: { data: { a: "2" } } },
        { signal },
      );
      await clock.sleep(1000, signal);
      expect(await host.readFile(`${at("/config")}/a`)).toBe("2");
    }));
});
