/** Volumes that need no provider, on one node under the virtual clock. Source: docs/behaviour/pod-volumes.md. */
import { type Pod, resources, type Stored, type Volume } from "@longshore/kube";
import { HostError, recordingLogger } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { NodeWorld, nodeName, type RunningAgent, rootDir } from "./testing/node-world.ts";

const namespace = "default";
const base64 = (text: string) => Buffer.from(text).toString("base64");
const configMap = (name: string) => ({ namespace, name });

/** A world with tools for the volumes of pods. */
async function podWorld(watch: Parameters<typeof NodeWorld.create>[0] = {}) {
  const world = await NodeWorld.create(watch);
  const { kube } = world;
  await kube.create(resources.serviceAccounts, { metadata: { name: "default", namespace } }, world);
  const settings = (data: Record<string, string>) =>
    kube.create(resources.configMaps, { metadata: configMap("settings"), data }, world);
  const change = (data: Record<string, string | null>) =>
    kube.patch(resources.configMaps, configMap("settings"), { type: "merge", body: { data } }, world);
  const pod = (name: string, ...volumes: Volume[]): Promise<Stored<Pod>> =>
    world.pod(name, [], {
      serviceAccountName: "default",
      containers: [
        {
          name: "c",
          image: "i",
          volumeMounts: volumes.map((volume) => ({ name: volume.name, mountPath: `/${volume.name}` })),
        },
      ],
      volumes,
    });
  const pathOf = (agent: RunningAgent, of: Stored<Pod>, volume = "v") =>
    agent.volumes.mountedVolumes(of.metadata.uid).get(volume)?.path;
  const mounted = async (agent: RunningAgent, of: Stored<Pod>, volume = "v") => {
    await world.until("mounted", () => pathOf(agent, of, volume) !== undefined);
    return pathOf(agent, of, volume) ?? "";
  };
  const reads = (path: string, text: string | undefined, limitMs?: number) =>
    world.until(`${path} is ${text}`, async () => (await world.host.readFile(path)) === text, limitMs);
  const events = async () => {
    const { items } = await kube.list(resources.events, world);
    return items.map(({ reason, message }) => `${reason}: ${message}`);
  };
  const reports = (text: string) =>
    world.until(`an event with "${text}"`, async () =>
      (await events()).some((event) => event.includes(text)),
    );
  const directories = async () => {
    const found: string[] = [];
    for (const uid of (await world.host.readDirectory(`${rootDir}/pods`)) ?? []) {
      for (const plugin of (await world.host.readDirectory(`${rootDir}/pods/${uid}/volumes`)) ?? []) {
        const names = await world.host.readDirectory(`${rootDir}/pods/${uid}/volumes/${plugin}`);
        found.push(...(names ?? []).map((name) => `${plugin}/${name}`));
      }
    }
    return found.sort();
  };
  return { world, kube, settings, change, pod, pathOf, mounted, reads, events, reports, directories };
}

const fromSettings = (over: object = {}): Volume => ({ name: "v", configMap: { name: "settings", ...over } });
const item = (key: string) => ({ items: [{ key, path: key }] });

describe("files made from objects (docs/behaviour/pod-volumes.md 3)", () => {
  it("a missing ConfigMap is named in an event, and the pod goes on as soon as it is there (pod-volumes.md 3.1)", async () => {
    const { world, settings, pod, mounted, pathOf, reports } = await podWorld();
    const agent = world.start();
    const p = await pod("p", fromSettings());
    await reports("ConfigMap default/settings does not exist: create it, or make the source optional");
    await world.clock.advance(60_000);
    expect(pathOf(agent, p)).toBeUndefined();
    await settings({ a: "1" });
    // By the event of the watch: the back-off would have been a minute by now.
    await world.until("mounted at once", () => pathOf(agent, p) !== undefined, 1000);
    expect(await world.host.readFile(`${await mounted(agent, p)}/a`)).toBe("1");
    await agent.stop();
  });

  it("a missing key of items is named in an event (pod-volumes.md 3.1)", async () => {
    const { world, settings, change, pod, mounted, reports } = await podWorld();
    const agent = world.start();
    await settings({ a: "1" });
    const p = await pod("p", fromSettings(item("b")));
    await reports('ConfigMap default/settings has no key "b": add it, or make the source optional');
    await change({ b: "2" });
    expect(await world.host.readFile(`${await mounted(agent, p)}/b`)).toBe("2");
    await agent.stop();
  });

  it("an optional source that is missing makes an empty volume, and is filled when it comes (pod-volumes.md 3.1)", async () => {
    const { world, settings, pod, mounted, reads } = await podWorld();
    const agent = world.start();
    const p = await pod("p", fromSettings({ optional: true }));
    const path = await mounted(agent, p);
    expect(await world.host.readDirectory(path)).not.toContain("a");
    await settings({ a: "1" });
    await reads(`${path}/a`, "1", 1000);
    await agent.stop();
  });

  it("only the items are there, under their paths and modes (pod-volumes.md 3.1, 3.2)", async () => {
    const { world, kube, pod, mounted } = await podWorld();
    const agent = world.start();
    const data = { user: base64("u"), password: base64("p"), unused: base64("x") };
    await kube.create(resources.secrets, { metadata: configMap("login"), data }, world);
    const items = [
      { key: "user", path: "as/user" },
      { key: "password", path: "as/password", mode: 0o400 },
    ];
    const p = await pod("p", { name: "v", secret: { secretName: "login", items, defaultMode: 0o440 } });
    const path = await mounted(agent, p);
    const { host } = world;
    expect(await host.readDirectory(`${path}/as`)).toEqual(["password", "user"]);
    expect(await host.readDirectory(path)).not.toContain("unused");
    expect((await host.stat(`${path}/..data/as/user`))?.mode).toBe(0o440);
    expect((await host.stat(`${path}/..data/as/password`))?.mode).toBe(0o400);
    await agent.stop();
  });

  it("containers cannot write to them (pod-volumes.md 3.5)", async () => {
    const { world, settings, pod, mounted } = await podWorld();
    const agent = world.start();
    await settings({ a: "1" });
    const p = await pod("p", fromSettings(), { name: "scratch", emptyDir: {} });
    await mounted(agent, p);
    await mounted(agent, p, "scratch");
    const volumes = agent.volumes.mountedVolumes(p.metadata.uid);
    expect(volumes.get("v")?.readOnly).toBe(true);
    expect(volumes.get("scratch")?.readOnly).toBe(false);
    await agent.stop();
  });

  it("a projected volume joins a Secret, a ConfigMap, the pod's own data and a token (pod-volumes.md 3.4)", async () => {
    const { world, kube, settings, pod, mounted } = await podWorld();
    const agent = world.start();
    await settings({ a: "1" });
    const login = { metadata: configMap("login"), data: { user: base64("u") } };
    await kube.create(resources.secrets, login, world);
    const fieldRef = { fieldPath: "metadata.namespace" };
    const sources = [
      { secret: { name: "login" } },
      { configMap: { name: "settings" } },
      { downwardAPI: { items: [{ path: "namespace", fieldRef }] } },
      { serviceAccountToken: { audience: "vault", expirationSeconds: 600, path: "token" } },
    ];
    const p = await pod("p", { name: "v", projected: { sources } });
    const path = await mounted(agent, p);
    expect(await world.host.readFile(`${path}/user`)).toBe("u");
    expect(await world.host.readFile(`${path}/a`)).toBe("1");
    expect(await world.host.readFile(`${path}/namespace`)).toBe("default");
    expect((await world.host.readFile(`${path}/token`))?.split(".")).toHaveLength(3);
    await agent.stop();
  });

  it("downwardAPI shows metadata, and limits that fall back to what the node has (pod-volumes.md 3.3)", async () => {
    const { world, kube, pathOf } = await podWorld();
    const agent = world.start();
    const allocatable = { cpu: "4", memory: "8Gi" };
    const status = { type: "merge", body: { status: { allocatable } } } as const;
    await kube.patch(resources.nodes, { name: nodeName }, status, { ...world, subresource: "status" });
    const field = (path: string, fieldPath: string) => ({ path, fieldRef: { fieldPath } });
    const of = (path: string, resource: string, divisor?: string) => ({
      path,
      resourceFieldRef: { containerName: "c", resource, ...(divisor !== undefined && { divisor }) },
    });
    const items = [
      field("labels", "metadata.labels"),
      field("tier", "metadata.labels['tier']"),
      field("annotations", "metadata.annotations"),
      of("cpu", "limits.cpu", "1m"),
      of("memory", "limits.memory", "1Mi"),
      of("request", "requests.cpu"),
    ];
    const p = await kube.create(
      resources.pods,
      {
        metadata: { name: "p", namespace, labels: { tier: "db", app: "shop" }, annotations: { note: 'a"b' } },
        spec: {
          nodeName,
          containers: [
            {
              name: "c",
              image: "i",
              resources: { requests: { cpu: "250m" }, limits: { cpu: "1500m" } },
              volumeMounts: [{ name: "v", mountPath: "/v" }],
            },
          ],
          volumes: [{ name: "v", downwardAPI: { items } }],
        },
      },
      world,
    );
    await world.until("mounted", () => pathOf(agent, p) !== undefined);
    const read = (name: string) => world.host.readFile(`${pathOf(agent, p)}/${name}`);
    expect(await read("labels")).toBe('app="shop"\ntier="db"');
    expect(await read("annotations")).toBe('note="a\\"b"');
    expect(await read("tier")).toBe("db");
    expect(await read("cpu")).toBe("1500");
    expect(await read("memory")).toBe("8192");
    expect(await read("request")).toBe("1"); // Rounded up.
    await agent.stop();
  });
});

describe("following sources (docs/behaviour/pod-volumes.md 5)", () => {
  it("a change reaches the volume in use, which stays mounted (pod-volumes.md 5.2)", async () => {
    const { world, settings, change, pod, mounted, reads, pathOf } = await podWorld();
    const agent = world.start();
    await settings({ a: "1", b: "1" });
    const p = await pod("p", fromSettings());
    const path = await mounted(agent, p);
    let wasUnmounted = false;
    const watching = agent.volumes.mountedVolumes.bind(agent.volumes);
    await change({ a: "2", b: null });
    await world.until(
      "changed",
      async () => {
        wasUnmounted ||= watching(p.metadata.uid).size === 0;
        return (await world.host.readFile(`${path}/a`)) === "2";
      },
      1000,
    );
    await reads(`${path}/b`, undefined, 1000);
    expect(wasUnmounted).toBe(false);
    expect(pathOf(agent, p)).toBe(path);
    await agent.stop();
  });

  it("a change that cannot be shown leaves the files as they are, with an event, and is made up for (pod-volumes.md 5.2)", async () => {
    const { world, settings, change, pod, mounted, reads, reports, pathOf } = await podWorld();
    const agent = world.start();
    await settings({ a: "1" });
    const p = await pod("p", fromSettings(item("a")));
    const path = await mounted(agent, p);
    await change({ a: null, other: "x" });
    await reports('ConfigMap default/settings has no key "a"');
    expect(await world.host.readFile(`${path}/a`)).toBe("1");
    expect(pathOf(agent, p)).toBe(path);
    await change({ a: "3" });
    await reads(`${path}/a`, "3", 1000);
    await agent.stop();
  });

  it("an update that the disk has no room for is tried again with back-off, without a further event (pod-volumes.md 5.2)", async () => {
    const { world, settings, change, pod, mounted, reads, reports } = await podWorld();
    const agent = world.start();
    await settings({ a: "1" });
    const p = await pod("p", fromSettings());
    const path = await mounted(agent, p);
    const { host } = world;
    const write = host.writeFileAtomic.bind(host);
    host.writeFileAtomic = async (to) => {
      throw new HostError("writeFileAtomic", to, "ENOSPC");
    };
    await change({ a: "2" });
    await reports("ENOSPC");
    expect(await host.readFile(`${path}/a`)).toBe("1");
    host.writeFileAtomic = write;
    await reads(`${path}/a`, "2", 10_000);
    await agent.stop();
  });

  it("one watch of its name serves all volumes that read an object, and ends with the last (pod-volumes.md 5.1)", async () => {
    const { world, settings, change, pod, mounted, reads } = await podWorld();
    const agent = world.start();
    await settings({ a: "1" });
    const [p, q] = [await pod("p", fromSettings()), await pod("q", fromSettings())];
    const paths = [await mounted(agent, p), await mounted(agent, q)];
    const lists = () => world.requests.filter((request) => request === "list configmaps").length;
    expect(lists()).toBe(1);
    await change({ a: "2" });
    for (const path of paths) await reads(`${path}/a`, "2", 1000);
    await world.deletePod("p");
    await world.until("p is released", () => agent.volumes.podVolumesGone(p.metadata.uid));
    await change({ a: "3" });
    await reads(`${paths[1]}/a`, "3", 1000);
    await world.deletePod("q");
    await world.until("q is released", () => agent.volumes.podVolumesGone(q.metadata.uid));
    const r = await pod("r", fromSettings());
    await mounted(agent, r);
    expect(lists()).toBe(2);
    await agent.stop();
  });

  it("changed labels are shown by downwardAPI, and set up nothing else (pod-volumes.md 5.3)", async () => {
    const { world, kube, settings, pod, mounted, reads } = await podWorld();
    const agent = world.start();
    await settings({ a: "1" });
    const items = [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }];
    const p = await pod("p", { name: "v", downwardAPI: { items } }, { ...fromSettings(), name: "w" });
    const path = await mounted(agent, p);
    const other = await mounted(agent, p, "w");
    // Were it set up again, this would go as a left-over.
    await world.host.writeFileAtomic(`${other}/..left`, "");
    const body = { metadata: { labels: { color: "blue" } } };
    await kube.patch(resources.pods, { namespace, name: "p" }, { type: "merge", body }, world);
    await reads(`${path}/labels`, 'color="blue"', 1000);
    await world.clock.advance(5000);
    expect(await world.host.readFile(`${other}/..left`)).toBe("");
    await agent.stop();
  });

  it("a token is renewed in the volume before it expires (pod-volumes.md 5.4, 6.3)", async () => {
    const { world, pod, mounted } = await podWorld();
    const agent = world.start();
    const serviceAccountToken = { expirationSeconds: 600, path: "token" };
    const p = await pod("p", { name: "v", projected: { sources: [{ serviceAccountToken }] } });
    const file = `${await mounted(agent, p)}/token`;
    const first = await world.host.readFile(file);
    await world.clock.advance(450_000);
    expect(await world.host.readFile(file)).toBe(first);
    await world.clock.advance(40_000);
    const second = await world.host.readFile(file);
    expect(second).not.toBe(first);
    await world.clock.advance(490_000);
    expect(await world.host.readFile(file)).not.toBe(second);
    await agent.stop();
  });

  it("no value of a Secret is in an event or in the log (contract.md C7)", async () => {
    const logger = recordingLogger();
    const { world, kube, pod, events, reports, mounted } = await podWorld({ logger });
    const agent = world.start();
    const data = { "good-key": base64("hunter2-value"), "..bad": base64("hunter2-other") };
    await kube.create(
      resources.secrets,
      { metadata: configMap("login"), data: { a: data["good-key"] } },
      world,
    );
    const items = [
      { key: "a", path: "a" },
      { key: "missing", path: "b" },
    ];
    await pod("p", { name: "v", secret: { secretName: "login", items } });
    await reports('Secret default/login has no key "missing"');
    const q = await pod("q", { name: "v", secret: { secretName: "login" } });
    expect(await world.host.readFile(`${await mounted(agent, q)}/a`)).toBe("hunter2-value");
    expect(JSON.stringify([await events(), logger.lines])).not.toContain("hunter2");
    await agent.stop();
  });
});

describe("what lies in memory (docs/behaviour/pod-volumes.md 1, 2)", () => {
  it("files of Secrets reach no disk, and are unmounted with the pod, also after a crash (pod-volumes.md 1.2)", async () => {
    const { world, kube, pod, mounted, directories, reads } = await podWorld();
    const first = world.start();
    await kube.create(resources.secrets, { metadata: configMap("login"), data: { a: base64("x") } }, world);
    const p = await pod("p", { name: "v", secret: { secretName: "login" } });
    const path = await mounted(first, p);
    expect(await world.host.listMounts(path)).toMatchObject([{ target: path, fsType: "tmpfs" }]);
    first.crash();
    const second = world.start();
    const data = { a: base64("y") };
    await kube.patch(resources.secrets, configMap("login"), { type: "merge", body: { data } }, world);
    await reads(`${path}/a`, "y");
    expect(await world.host.listMounts(path)).toHaveLength(1);
    await world.deletePod("p");
    await world.until("gone", () => second.volumes.podVolumesGone(p.metadata.uid));
    expect(await world.host.listMounts(rootDir)).toEqual([]);
    expect(await directories()).toEqual([]);
    await second.stop();
  });

  it("an emptyDir of medium Memory holds as much as its sizeLimit, and is empty after a loss of power (pod-volumes.md 2.2)", async () => {
    const { world, pod, mounted } = await podWorld();
    const first = world.start();
    const p = await pod("p", { name: "v", emptyDir: { medium: "Memory", sizeLimit: "1Ki" } });
    const path = await mounted(first, p);
    await world.host.writeFileAtomic(`${path}/f`, "x");
    await expect(world.host.writeFileAtomic(`${path}/g`, "x".repeat(2000))).rejects.toThrow("ENOSPC");
    first.crash();
    world.host.losePower();
    const second = world.start();
    await mounted(second, p);
    expect(await world.host.readDirectory(path)).toEqual([]);
    await second.stop();
  });

  it("another medium is refused (pod-volumes.md 2.2)", async () => {
    const { world, pod, reports } = await podWorld();
    const agent = world.start();
    await pod("p", { name: "v", emptyDir: { medium: "HugePages" } });
    await reports('emptyDir "v": medium "HugePages" is not supported: use "" or "Memory"');
    await agent.stop();
  });
});

describe("restarts (docs/behaviour/pod-volumes.md 1, 2)", () => {
  it("an emptyDir keeps what is in it, and goes with the pod (pod-volumes.md 2.1)", async () => {
    const { world, pod, mounted, directories } = await podWorld();
    const first = world.start();
    const p = await pod("p", { name: "v", emptyDir: { sizeLimit: "1Gi" } });
    const path = await mounted(first, p);
    await world.host.writeFileAtomic(`${path}/kept`, "x");
    first.crash();
    const second = world.start();
    expect(await mounted(second, p)).toBe(path);
    expect(await world.host.readFile(`${path}/kept`)).toBe("x");
    await world.deletePod("p");
    await world.until("gone", () => second.volumes.podVolumesGone(p.metadata.uid));
    expect(await directories()).toEqual([]);
    await second.stop();
  });

  it("what changed while no agent ran is there after the next one has begun (pod-volumes.md 5.1)", async () => {
    const { world, settings, change, pod, mounted, reads } = await podWorld();
    const first = world.start();
    await settings({ a: "1" });
    const p = await pod("p", fromSettings());
    const path = await mounted(first, p);
    first.crash();
    await change({ a: "2" });
    const second = world.start();
    await reads(`${path}/a`, "2");
    await change({ a: "3" });
    await reads(`${path}/a`, "3", 1000);
    await second.stop();
  });

  it("the volumes of pods that went while no agent ran are removed (pod-volumes.md 1.3)", async () => {
    const { world, settings, pod, mounted, directories } = await podWorld();
    const first = world.start();
    await settings({ a: "1" });
    await world.host.makeDirectory("/srv");
    await world.host.writeFileAtomic("/srv/precious", "x");
    const hostPath = { name: "h", hostPath: { path: "/srv" } };
    const p = await pod("p", fromSettings(), { name: "e", emptyDir: {} }, hostPath);
    for (const name of ["v", "e", "h"]) await mounted(first, p, name);
    expect(await directories()).toEqual([
      "kubernetes.io~configmap/v",
      "kubernetes.io~empty-dir/e",
      "kubernetes.io~host-path/h",
    ]);
    first.crash();
    await world.deletePod("p");
    const second = world.start();
    await world.until("removed", async () => (await directories()).length === 0);
    expect(second.volumes.podVolumesGone(p.metadata.uid)).toBe(true);
    expect(await world.host.readFile("/srv/precious")).toBe("x");
    await second.stop();
  });

  it("a volume whose source has gone while no agent ran is still removed with its pod (pod-volumes.md 1.5)", async () => {
    const { world, kube, settings, pod, mounted, directories, reports } = await podWorld();
    const first = world.start();
    await settings({ a: "1" });
    const p = await pod("p", fromSettings());
    await mounted(first, p);
    first.crash();
    await kube.delete(resources.configMaps, configMap("settings"), world);
    const second = world.start();
    await reports("ConfigMap default/settings does not exist");
    await world.deletePod("p");
    await world.until("gone", () => second.volumes.podVolumesGone(p.metadata.uid));
    expect(await directories()).toEqual([]);
    await second.stop();
  });
});

describe("hostPath (docs/behaviour/pod-volumes.md 7)", () => {
  it("the container gets the path itself, of which nothing is removed with the pod (pod-volumes.md 7.1)", async () => {
    const { world, pod, mounted, directories } = await podWorld();
    const agent = world.start();
    await world.host.makeDirectory("/srv");
    await world.host.writeFileAtomic("/srv/precious", "x");
    const p = await pod("p", { name: "v", hostPath: { path: "/srv", type: "Directory" } });
    expect(await mounted(agent, p)).toBe("/srv");
    await world.deletePod("p");
    await world.until("gone", () => agent.volumes.podVolumesGone(p.metadata.uid));
    expect(await world.host.readFile("/srv/precious")).toBe("x");
    expect(await directories()).toEqual([]);
    await agent.stop();
  });

  it.each<[type: string, path: string, outcome: string]>([
    ["", "/new", "directory"],
    ["", "/file", "file"],
    ["DirectoryOrCreate", "/new", "directory"],
    ["DirectoryOrCreate", "/file", "hostPath /file is not a directory, as type DirectoryOrCreate demands"],
    ["Directory", "/dir", "directory"],
    ["Directory", "/link-to-dir", "symlink"],
    ["Directory", "/new", "hostPath /new (type Directory) does not exist on this node: create it"],
    ["Directory", "/loop", "ELOOP"],
    ["FileOrCreate", "/new", "file"],
    ["FileOrCreate", "/file", "file"],
    ["FileOrCreate", "/no/parent", "hostPath /no/parent cannot be created"],
    ["File", "/dir", "hostPath /dir is not a file, as type File demands"],
    ["File", "/file", "file"],
    ["Socket", "/sock", "socket"],
    ["Socket", "/file", "hostPath /file is not a socket, as type Socket demands"],
    ["CharDevice", "/file", "hostPath /file is not a character device, as type CharDevice demands"],
    ["BlockDevice", "/file", "hostPath /file is not a block device, as type BlockDevice demands"],
  ])("type %j at %s: %s (pod-volumes.md 7.2, 7.3)", async (type, path, outcome) => {
    const { world, pod, mounted, reports } = await podWorld();
    const { host } = world;
    await host.makeDirectory("/dir");
    await host.writeFileAtomic("/file", "content");
    await host.symlink("dir", "/link-to-dir");
    await host.symlink("loop", "/loop");
    host.placeSocket("/sock");
    const agent = world.start();
    const p = await pod("p", { name: "v", hostPath: { path, type } });
    if (/^[a-z]+$/.test(outcome)) {
      await mounted(agent, p);
      expect((await host.stat(path))?.kind).toBe(outcome);
      expect(await host.readFile("/file")).toBe("content");
    } else await reports(outcome);
    await agent.stop();
  });
});

it("mount options that a plugin does not use are refused by name (node-agent.md 7.3)", async () => {
  const { world, pod, reports } = await podWorld();
  await world.host.makeDirectory("/data");
  await world.volume("h", { hostPath: { path: "/data" }, mountOptions: ["noexec"] });
  const agent = world.start();
  const p = await pod("p", { name: "v", persistentVolumeClaim: { claimName: "claim-h" } });
  await reports("PersistentVolume pv-h: mount options noexec are not supported by kubernetes.io/host-path");
  expect(agent.volumes.mountedVolumes(p.metadata.uid).size).toBe(0);
  const without = { type: "merge", body: { spec: { mountOptions: null } } } as const;
  await world.kube.patch(resources.persistentVolumes, { name: "pv-h" }, without, world);
  const wait = () => world.clock.run(agent.volumes.waitForAttachAndMount(p, world.signal)).catch(() => {});
  await wait();
  await wait();
  expect(agent.volumes.mountedVolumes(p.metadata.uid).size).toBe(1);
  await agent.stop();
});

describe("local PersistentVolumes (docs/behaviour/pod-volumes.md 8)", () => {
  async function localWorld(path: string, onNode: string, over: object = {}) {
    const tools = await podWorld();
    const key = "kubernetes.io/hostname";
    const term = { matchExpressions: [{ key, operator: "In", values: [onNode] }] };
    const labels = { type: "merge", body: { metadata: { labels: { [key]: nodeName } } } } as const;
    await tools.kube.patch(resources.nodes, { name: nodeName }, labels, tools.world);
    const nodeAffinity = { required: { nodeSelectorTerms: [term] } };
    await tools.world.volume("l", { local: { path }, nodeAffinity, ...over });
    const claim = { name: "v", persistentVolumeClaim: { claimName: "claim-l" } };
    return { ...tools, claim };
  }

  it("the directory is bound into the pod, and stays as it is when the pod goes (pod-volumes.md 8.1, 8.4)", async () => {
    const { world, pod, mounted, claim, directories } = await localWorld("/mnt/disk", nodeName);
    await world.host.makeDirectory("/mnt/disk");
    const agent = world.start();
    const p = await pod("p", claim);
    const path = await mounted(agent, p);
    await world.host.writeFileAtomic(`${path}/f`, "x");
    expect(await world.host.readFile("/mnt/disk/f")).toBe("x");
    agent.crash();
    await world.deletePod("p");
    const second = world.start();
    await world.until("removed", async () => (await directories()).length === 0);
    expect(await world.host.listMounts(`${rootDir}/pods`)).toEqual([]);
    expect(await world.host.readFile("/mnt/disk/f")).toBe("x");
    await second.stop();
  });

  it("a path that is not there is named, and never made (pod-volumes.md 8.1)", async () => {
    const { world, pod, reports, mounted, claim } = await localWorld("/mnt/disk", nodeName);
    const agent = world.start();
    const p = await pod("p", claim);
    await reports('PersistentVolume pv-l: spec.local.path "/mnt/disk" does not exist on node node-1');
    expect(await world.host.stat("/mnt/disk")).toBeUndefined();
    await world.host.makeDirectory("/mnt/disk");
    await mounted(agent, p);
    await agent.stop();
  });

  it("the volume of another node is refused (pod-volumes.md 8.1)", async () => {
    const { world, pod, reports, claim } = await localWorld("/mnt/disk", "other");
    await world.host.makeDirectory("/mnt/disk");
    const agent = world.start();
    await pod("p", claim);
    await reports("PersistentVolume pv-l: spec.nodeAffinity does not match node node-1");
    await agent.stop();
  });

  const globalMount = `${rootDir}/plugins/kubernetes.io/local-volume/mounts/pv-l`;

  /** A node with a local disk of 1 MiB, and the path of its device. */
  async function diskWorld(local: object = {}) {
    const tools = await podWorld();
    await tools.world.host.truncateFile("/disk", 1 << 20);
    const device = await tools.world.host.attachLoop("/disk");
    await tools.world.host.symlink(device, "/by-id");
    const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions: [notLabelled] }] } };
    await tools.world.volume("l", { local: { path: "/by-id", ...local }, nodeAffinity });
    const claim = { name: "v", persistentVolumeClaim: { claimName: "claim-l" } };
    return { ...tools, claim, device };
  }
  const notLabelled = { key: "no-such-label", operator: "DoesNotExist" };

  it("a device is formatted once, mounted once for all pods of the node, and unmounted with the last (pod-volumes.md 8.2)", async () => {
    const { world, pod, mounted, claim, device } = await diskWorld();
    const agent = world.start();
    const pathOfP = await mounted(agent, await pod("p", claim));
    await world.host.writeFileAtomic(`${pathOfP}/f`, "x");
    const pathOfQ = await mounted(agent, await pod("q", claim));
    expect(await world.host.readFile(`${pathOfQ}/f`)).toBe("x");
    const mounts = async () =>
      (await world.host.listMounts(rootDir)).map(({ target, source, fsType }) => [target, source, fsType]);
    expect(await mounts()).toContainEqual([globalMount, device, "ext4"]);
    expect(await mounts()).toHaveLength(3);
    await world.deletePod("p");
    await world.until("p has let go", async () => (await mounts()).length === 2);
    await world.deletePod("q");
    await world.until("nothing is mounted", async () => (await mounts()).length === 0);
    await world.until(
      "its directory has gone",
      async () => (await world.host.stat(globalMount)) === undefined,
    );
    const again = await mounted(agent, await pod("r", claim));
    expect(await world.host.readFile(`${again}/f`)).toBe("x");
    await agent.stop();
  });

  it("a device whose pods went while no agent ran is unmounted (pod-volumes.md 8.2)", async () => {
    const { world, pod, mounted, claim } = await diskWorld();
    const agent = world.start();
    await mounted(agent, await pod("p", claim));
    agent.crash();
    await world.deletePod("p");
    const second = world.start();
    await world.until("unmounted", async () => (await world.host.listMounts(rootDir)).length === 0);
    await second.stop();
  });

  it.each([
    [{}, "xfs"],
    [{ fsType: "ext4" }, 'it holds xfs and its fsType is "ext4": set fsType to xfs'],
  ])(
    "a device that holds a file system is never formatted: %j, %s (pod-volumes.md 8.2)",
    async (local, outcome) => {
      const { world, pod, mounted, reports, claim, device } = await diskWorld(local);
      await world.host.format(device, "xfs");
      const agent = world.start();
      const p = await pod("p", claim);
      if (outcome === "xfs") {
        await mounted(agent, p);
        expect((await world.host.listMounts(globalMount))[0]?.fsType).toBe("xfs");
      } else await reports(outcome);
      await agent.stop();
    },
  );

  it("mount options are for devices: they are refused with a directory (pod-volumes.md 8.2)", async () => {
    const { world, pod, reports, claim } = await localWorld("/mnt/disk", nodeName, {
      mountOptions: ["noatime"],
    });
    await world.host.makeDirectory("/mnt/disk");
    const agent = world.start();
    await pod("p", claim);
    await reports(
      "PersistentVolume pv-l: mount options noatime are for a device, and /mnt/disk is a directory",
    );
    await agent.stop();
  });

  it.each([
    [{}, "1000 always"],
    [{ fsGroupChangePolicy: "OnRootMismatch" }, "1000 where its root is another's"],
  ])(
    "the group of its files changes with the first pod only: %j (pod-volumes.md 8.3)",
    async (policy, change) => {
      const { world, claim } = await localWorld("/mnt/disk", nodeName);
      await world.host.makeDirectory("/mnt/disk");
      const chowned: string[] = [];
      const { host } = world;
      const original = host.chownTree.bind(host);
      host.chownTree = async (path, gid, options) => {
        chowned.push(
          `${gid} ${options?.onlyOnRootMismatch === true ? "where its root is another's" : "always"}`,
        );
        return original(path, gid, options);
      };
      const agent = world.start();
      for (const [name, fsGroup] of [
        ["p", 1000],
        ["q", 2000],
      ] as const) {
        const spec = { securityContext: { fsGroup, ...policy } };
        const containers = [{ name: "c", image: "i", volumeMounts: [{ name: "v", mountPath: "/v" }] }];
        const made = await world.pod(name, [], { ...spec, containers, volumes: [claim] });
        await world.until("mounted", () => agent.volumes.mountedVolumes(made.metadata.uid).size === 1);
      }
      expect(chowned).toEqual([change]);
      await world.until("said on the second", async () => {
        const { items } = await world.kube.list(resources.events, world);
        return items.some(
          ({ reason, involvedObject: { name }, message }) =>
            [reason, name].join() === "AlreadyMountedVolume,q" &&
            message ===
              "The requested fsGroup is 2000, but the volume pv-l has GID 1000. The volume may not be shareable.",
        );
      });
      await agent.stop();
    },
  );
});
