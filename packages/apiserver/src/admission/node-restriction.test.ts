/** What a node may do: the node authorizer and the NodeRestriction admission together. */
import type { KubeObject } from "@longshore/kube";
import { beforeEach, describe, expect, it } from "vitest";
import { adminUser } from "../api/api-request.ts";
import type { ApiServer } from "../api-server.ts";
import { asker } from "../testing/ask.ts";
import { aServer } from "../testing/world.ts";

const nodeUser = (name: string) => ({
  name: `system:node:${name}`,
  groups: ["system:nodes", "system:authenticated"],
});
const core = "api/v1";
const inDefault = "api/v1/namespaces/default";
const storage = "apis/storage.k8s.io/v1";
const leases = "apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

const container = (rest: object = {}) => ({ name: "c", image: "i", ...rest });
const pod = (name: string, nodeName: string, spec: object = {}) => ({
  metadata: { name, namespace: "default" },
  spec: { nodeName, serviceAccountName: "bot", containers: [container()], ...spec },
});
const named = (name: string, rest: object = {}) => ({ metadata: { name }, ...rest });
const claim = (name: string) =>
  named(name, {
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "",
      resources: { requests: { storage: "1Gi" } },
    },
  });
const secretRef = (name: string) => ({ name, namespace: "default" });
const volume = (name: string, claimName: string) =>
  named(name, {
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      claimRef: { namespace: "default", name: claimName },
      csi: {
        driver: "d.example.com",
        volumeHandle: name,
        nodeStageSecretRef: secretRef(`${name}-stage`),
        nodePublishSecretRef: secretRef(`${name}-publish`),
        controllerPublishSecretRef: secretRef(`${name}-controller`),
      },
    },
  });

let server: ApiServer;
let admin: ReturnType<typeof asker>;
let n1: ReturnType<typeof asker>;
beforeEach(() => {
  server = aServer().server;
  admin = asker(server, adminUser);
  n1 = asker(server, nodeUser("n1"));
  for (const name of ["n1", "n2"]) admin.ask("create", `${core}/nodes`, named(name));
  admin.ask("create", `${inDefault}/serviceaccounts`, named("bot"));
  for (const name of ["env", "vol", "pull", "other", "inline"]) {
    admin.ask("create", `${inDefault}/secrets`, named(name));
    admin.ask("create", `${inDefault}/configmaps`, named(name));
  }
  for (const name of ["mine", "theirs"]) {
    admin.ask("create", `${inDefault}/persistentvolumeclaims`, claim(name));
    admin.ask("create", `${core}/persistentvolumes`, volume(`pv-${name}`, name));
    for (const use of ["stage", "publish", "controller"]) {
      admin.ask("create", `${inDefault}/secrets`, named(`pv-${name}-${use}`));
    }
  }
  for (const [name, nodeName] of [
    ["va-n1", "n1"],
    ["va-n2", "n2"],
  ] as const) {
    const source = { persistentVolumeName: nodeName === "n1" ? "pv-mine" : "pv-theirs" };
    const spec = { attacher: "d.example.com", nodeName, source };
    admin.ask("create", `${storage}/volumeattachments`, named(name, { spec }));
  }
  const needs = {
    imagePullSecrets: [{ name: "pull" }],
    containers: [
      container({
        env: [{ name: "A", valueFrom: { secretKeyRef: { name: "env", key: "a" } } }],
        envFrom: [{ configMapRef: { name: "env" } }],
      }),
    ],
    volumes: [
      { name: "s", secret: { secretName: "vol" } },
      { name: "m", configMap: { name: "vol" } },
      { name: "c", persistentVolumeClaim: { claimName: "mine" } },
      { name: "i", csi: { driver: "d.example.com", nodePublishSecretRef: { name: "inline" } } },
    ],
  };
  admin.ask("create", `${inDefault}/pods`, pod("p1", "n1", needs));
  const others = { volumes: [{ name: "c", persistentVolumeClaim: { claimName: "theirs" } }] };
  admin.ask("create", `${inDefault}/pods`, pod("p2", "n2", others));
});

describe("a node reads", () => {
  it.each([
    `${inDefault}/secrets/env`,
    `${inDefault}/secrets/vol`,
    `${inDefault}/secrets/pull`,
    `${inDefault}/secrets/inline`,
    `${inDefault}/secrets/pv-mine-stage`,
    `${inDefault}/secrets/pv-mine-publish`,
    `${inDefault}/configmaps/env`,
    `${inDefault}/configmaps/vol`,
    `${inDefault}/persistentvolumeclaims/mine`,
    `${core}/persistentvolumes/pv-mine`,
    `${storage}/volumeattachments/va-n1`,
    `${inDefault}/pods/p1`,
    `${core}/nodes/n1`,
  ])("%s", (path) => {
    expect(n1.outcome("get", path)).toBe("ok");
  });

  it.each([
    ["get", `${inDefault}/secrets/other`],
    ["get", `${inDefault}/secrets/pv-theirs-stage`],
    // For the controller's calls only.
    ["get", `${inDefault}/secrets/pv-mine-controller`],
    ["get", `${inDefault}/configmaps/pull`],
    ["get", `${inDefault}/persistentvolumeclaims/theirs`],
    ["get", `${core}/persistentvolumes/pv-theirs`],
    ["get", `${storage}/volumeattachments/va-n2`],
    ["get", `${inDefault}/pods/p2`],
    ["get", `${core}/nodes/n2`],
    ["get", "api/v1/namespaces/kube-system/secrets/env"],
    ["list", `${inDefault}/secrets`],
    ["list", `${core}/secrets`],
    ["list", `${core}/persistentvolumes`],
    ["watch", `${core}/persistentvolumes`],
    ["list", `${inDefault}/persistentvolumeclaims`],
    ["list", `${storage}/volumeattachments`],
    ["list", `${core}/pods`],
    ["list", `${core}/nodes`],
    ["list", "apis/apps/v1/namespaces/default/statefulsets"],
    ["update", `${inDefault}/secrets/env`],
    ["delete", `${core}/persistentvolumes/pv-mine`],
    ["create", `${core}/persistentvolumes`],
  ] as const)("not %s %s", (verb, path) => {
    expect(n1.outcome(verb, path, {})).toContain("403");
  });

  it.each([
    [`${core}/pods`, "spec.nodeName=n1", "ok"],
    [`${core}/pods`, "spec.nodeName=n2", "403"],
    [`${inDefault}/secrets`, "metadata.name=env", "ok"],
    [`${inDefault}/secrets`, "metadata.name=other", "403"],
    [`${core}/persistentvolumes`, "metadata.name=pv-mine", "403"],
  ])("in lists of %s with %s: %s", (path, fieldSelector, outcome) => {
    expect(n1.outcome("list", path, undefined, { query: { fieldSelector } })).toContain(outcome);
    expect(n1.outcome("watch", path, undefined, { query: { fieldSelector } })).toContain(outcome);
  });

  it("no longer what a pod needed that is gone, and what one needs that has come", () => {
    admin.ask("delete", `${inDefault}/pods/p1`, { gracePeriodSeconds: 0 });
    for (const path of ["secrets/env", "secrets/pv-mine-stage", "persistentvolumeclaims/mine"]) {
      expect(n1.outcome("get", `${inDefault}/${path}`)).toContain("no relationship found between node 'n1'");
    }
    expect(n1.outcome("get", `${core}/persistentvolumes/pv-mine`)).toContain("403");
    const volumes = [{ name: "s", secret: { secretName: "other" } }];
    const { nodeName: _n, ...spec } = pod("p3", "", { volumes }).spec;
    admin.ask("create", `${inDefault}/pods`, named("p3", { spec }));
    expect(n1.outcome("get", `${inDefault}/secrets/other`)).toContain("403");
    admin.ask(
      "create",
      `${inDefault}/pods/p3/binding`,
      named("p3", { target: { kind: "Node", name: "n1" } }),
    );
    expect(n1.outcome("get", `${inDefault}/secrets/other`)).toBe("ok");
  });

  it("nothing under a name alone, or as a member of the group alone", () => {
    const path = `${inDefault}/secrets/env`;
    const asNamed = asker(server, { name: "system:node:n1", groups: ["system:authenticated"] });
    const asMember = asker(server, { name: "jane", groups: ["system:nodes", "system:authenticated"] });
    expect(asNamed.outcome("get", path)).toContain("403");
    expect(asMember.outcome("get", path)).toContain("403");
    expect(asker(server, nodeUser("")).outcome("get", path)).toContain("unknown node");
  });

  it("nothing through a pod that it has made known itself", () => {
    const mirror = {
      metadata: { name: "m", namespace: "default", annotations: { "kubernetes.io/config.mirror": "x" } },
      spec: {
        nodeName: "n1",
        containers: [container()],
        volumes: [{ name: "s", secret: { secretName: "other" } }],
      },
    };
    expect(n1.outcome("create", `${inDefault}/pods`, mirror)).toContain("403");
    admin.ask("create", `${inDefault}/pods`, mirror);
    expect(n1.outcome("get", `${inDefault}/secrets/other`)).toContain("403");
  });
});

const stored = (path: string) => admin.ask("get", path) as KubeObject & { status?: object; spec?: object };

describe("a node writes", () => {
  it("its own lease and CSINode, and no others", () => {
    expect(n1.outcome("create", leases, named("n1"))).toBe("ok");
    expect(n1.outcome("create", leases, named("n2"))).toContain("same name as the requesting node");
    const elsewhere = leases.replace("kube-node-lease", "default");
    expect(n1.outcome("create", elsewhere, named("n1"))).toContain("kube-node-lease");
    admin.ask("create", leases, named("n2"));
    expect(n1.outcome("get", `${leases}/n2`)).toContain("403");
    expect(n1.outcome("delete", `${leases}/n2`)).toContain("403");
    const csiNode = (name: string) => named(name, { spec: { drivers: [] } });
    expect(n1.outcome("create", `${storage}/csinodes`, csiNode("n1"))).toBe("ok");
    expect(n1.outcome("create", `${storage}/csinodes`, csiNode("n2"))).toContain("403");
    admin.ask("create", `${storage}/csinodes`, csiNode("n2"));
    for (const verb of ["get", "delete"] as const) {
      expect(n1.outcome(verb, `${storage}/csinodes/n2`)).toContain("403");
    }
  });

  it("its own Node, but neither taints, nor owners, nor labels that others rely on", () => {
    const node = stored(`${core}/nodes/n1`);
    const update = (change: object) => n1.outcome("update", `${core}/nodes/n1`, { ...node, ...change });
    const labels = (key: string) => ({ metadata: { ...node.metadata, labels: { [key]: "x" } } });
    expect(update(labels("node-restriction.kubernetes.io/tier"))).toContain("not allowed to modify labels");
    expect(update(labels("node-role.kubernetes.io/control-plane"))).toContain("not allowed to modify labels");
    expect(update({ spec: { ...node.spec, taints: [] } })).toContain("not allowed to modify taints");
    const ownerReferences = [{ apiVersion: "v1", kind: "Node", name: "n2", uid: "x" }];
    expect(update({ metadata: { ...node.metadata, ownerReferences } })).toContain("ownerReferences");
    expect(update(labels("topology.kubernetes.io/zone"))).toBe("ok");
    expect(n1.outcome("update", `${core}/nodes/n2`, stored(`${core}/nodes/n2`))).toContain(
      'node "n1" is not allowed to modify node "n2"',
    );
    expect(n1.outcome("update", `${core}/nodes/n2/status`, stored(`${core}/nodes/n2`))).toContain("403");
    expect(n1.outcome("delete", `${core}/nodes/n1`)).toContain("403");
    expect(n1.outcome("create", `${core}/nodes`, named("n3"))).toContain("403");
    const secure = { metadata: { name: "n9", labels: { "node-restriction.kubernetes.io/a": "b" } } };
    expect(asker(server, nodeUser("n9")).outcome("create", `${core}/nodes`, secure)).toContain("labels");
    expect(asker(server, nodeUser("n9")).outcome("create", `${core}/nodes`, named("n9"))).toBe("ok");
  });

  it("its status, and taints not through it", () => {
    const node = stored(`${core}/nodes/n1`);
    const capacity = { ...node, status: { ...node.status, capacity: { cpu: "2" } } };
    expect(n1.outcome("update", `${core}/nodes/n1/status`, capacity)).toBe("ok");
    const labels = { ...node.metadata, labels: { "node-restriction.kubernetes.io/a": "b" } };
    const { resourceVersion: _v, ...metadata } = labels;
    expect(n1.outcome("update", `${core}/nodes/n1/status`, { ...node, metadata })).toContain("labels");
  });

  it("the status of its own pods, without their labels", () => {
    const status = (name: string, metadata: object = {}) => {
      const before = stored(`${inDefault}/pods/${name}`);
      return n1.outcome("update", `${inDefault}/pods/${name}/status`, {
        ...before,
        metadata: { ...before.metadata, ...metadata },
        status: { phase: "Running" },
      });
    };
    expect(status("p1", { labels: { a: "b" } })).toContain("cannot update labels through pod status");
    expect(status("p1")).toBe("ok");
    expect(status("p2")).toContain("can only update pod status for pods with spec.nodeName set to itself");
    expect(n1.outcome("update", `${inDefault}/pods/p1`, stored(`${inDefault}/pods/p1`))).toContain("403");
  });

  it("deletes and evicts its own pods only, and makes none", () => {
    expect(n1.outcome("delete", `${inDefault}/pods/p2`)).toContain("can only delete pods");
    expect(n1.outcome("create", `${inDefault}/pods/p2/eviction`, named("p2"))).toContain(
      "can only evict pods",
    );
    expect(n1.outcome("create", `${inDefault}/pods`, pod("x", "n1"))).toContain(
      "can only create mirror pods",
    );
    expect(n1.outcome("delete", `${inDefault}/pods/p1`, { gracePeriodSeconds: 0 })).toBe("ok");
    expect(n1.outcome("delete", `${inDefault}/pods/p1`)).toBe('404 pods "p1" not found');
  });

  it("of its pods' claims the size and the conditions", () => {
    const path = `${inDefault}/persistentvolumeclaims/mine`;
    const before = stored(path);
    const status = (change: object) =>
      n1.outcome("update", `${path}/status`, { ...before, status: { ...before.status, ...change } });
    expect(status({ phase: "Lost" })).toContain("other than status.quantity and status.conditions");
    expect(status({ capacity: { storage: "2Gi" } })).toBe("ok");
    expect(n1.outcome("update", path, before)).toContain("403");
    const theirs = `${inDefault}/persistentvolumeclaims/theirs`;
    expect(n1.outcome("update", `${theirs}/status`, stored(theirs))).toContain("no relationship");
  });
});

describe("a node mints tokens", () => {
  const path = `${inDefault}/serviceaccounts/bot/token`;
  const tokenRequest = (boundObjectRef?: object) => ({
    spec: boundObjectRef === undefined ? {} : { boundObjectRef },
  });
  const podRef = (name: string, uid: string | undefined) => ({ apiVersion: "v1", kind: "Pod", name, uid });
  const uidOf = (name: string) => stored(`${inDefault}/pods/${name}`).metadata?.uid;

  it("for an account of its pods, bound to the pod", () => {
    expect(n1.outcome("create", path, tokenRequest(podRef("p1", uidOf("p1"))))).toBe("ok");
  });

  it("for no other pod, object or account", () => {
    const bind = (ref?: object) => n1.outcome("create", path, tokenRequest(ref));
    expect(bind()).toContain("not bound to a pod");
    expect(bind({ apiVersion: "v1", kind: "Secret", name: "env" })).toContain("not bound to a pod");
    expect(bind(podRef("p1", undefined))).toContain("without a uid");
    expect(bind(podRef("p1", uidOf("p2")))).toContain("does not match the UID in record");
    expect(bind(podRef("p2", uidOf("p2")))).toContain("scheduled on a different node");
    expect(bind(podRef("gone", "x"))).toContain("404");
    admin.ask("create", `${inDefault}/serviceaccounts`, named("boss"));
    const boss = `${inDefault}/serviceaccounts/boss/token`;
    expect(n1.outcome("create", boss, tokenRequest(podRef("p1", uidOf("p1"))))).toContain(
      "no relationship found",
    );
  });
});

it("no other user is limited by it", () => {
  const path = `${inDefault}/serviceaccounts/bot/token`;
  expect(admin.outcome("create", path, { spec: {} })).toBe("ok");
});
