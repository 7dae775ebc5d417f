import {
  isExpired,
  type KubeApiError,
  type KubeClient,
  type ListOptions,
  type Pod,
  resources,
} from "@longshore/kube";
import { describe, expect, it } from "vitest";
import type { ListAnswer } from "../api/api-request.ts";
import { aServer } from "../testing/world.ts";

const signal = new AbortController().signal;

const pods: readonly Pod[] = [
  { metadata: { name: "a", namespace: "default", labels: { app: "web", tier: "front" } } },
  { metadata: { name: "b", namespace: "default", labels: { app: "web" } } },
  { metadata: { name: "c", namespace: "kube-system", labels: { app: "db" } } },
  { metadata: { name: "d", namespace: "kube-system" } },
].map((pod, i) => ({ ...pod, spec: { containers: [{ name: "m", image: "i" }], nodeName: `node-${i % 2}` } }));

async function withPods() {
  const world = aServer();
  for (const pod of pods) await world.kube.create(resources.pods, pod, { signal });
  return world;
}

async function names(kube: KubeClient, options: Partial<ListOptions>): Promise<string> {
  const { items } = await kube.list(resources.pods, { signal, ...options });
  return items.map((item) => item.metadata.name).join("");
}

describe("selectors", () => {
  it.each([
    [{}, "abcd"],
    [{ namespace: "default" }, "ab"],
    [{ namespace: "nowhere" }, ""],
    [{ labelSelector: "app=web" }, "ab"],
    [{ labelSelector: "app==web,tier" }, "a"],
    [{ labelSelector: "app!=web" }, "cd"],
    [{ labelSelector: "app in (web,db),!tier" }, "bc"],
    [{ labelSelector: "app notin (web)" }, "cd"],
    [{ labelSelector: "!app" }, "d"],
    [{ fieldSelector: "metadata.name=b" }, "b"],
    [{ fieldSelector: "metadata.namespace!=default" }, "cd"],
    [{ fieldSelector: "spec.nodeName=node-1" }, "bd"],
    [{ fieldSelector: "spec.nodeName=node-1,status.phase=Running" }, ""],
    [{ labelSelector: "app=web", fieldSelector: "spec.nodeName=node-1" }, "b"],
  ])("%j choose %s", async (options, chosen) => {
    const { kube } = await withPods();
    expect(await names(kube, options)).toBe(chosen);
  });

  it.each([
    { labelSelector: "app in web" },
    { labelSelector: "=" },
    { labelSelector: "a b" },
    { fieldSelector: "metadata.name" },
    { fieldSelector: "spec.colour=red" },
    { fieldSelector: "constructor=x" },
  ])("%j is refused with 400", async (options) => {
    const { kube } = await withPods();
    await expect(names(kube, options)).rejects.toMatchObject({ code: 400 });
  });
});

describe("pages", () => {
  it("put together are the list, whatever their size", async () => {
    const { kube, store } = await withPods();
    for (const limit of [1, 2, 3, 4, 5]) {
      const seen: string[] = [];
      let token: string | undefined;
      do {
        const page = await kube.list(resources.pods, {
          signal,
          limit,
          ...(token === undefined ? {} : { continue: token }),
        });
        expect(page.items.length).toBeLessThanOrEqual(limit);
        expect(page.resourceVersion).toBe(String(store.revision));
        seen.push(...page.items.map((item) => item.metadata.name));
        token = page.continue;
      } while (token !== undefined);
      expect(seen.join("")).toBe("abcd");
    }
  });

  it("report how many are left, unless a selector chooses", async () => {
    const { server } = await withPods();
    const page = (query: object) =>
      server.registry.handle({
        verb: "list",
        group: "",
        version: "v1",
        resource: "pods",
        query,
        user: { name: "t", groups: [] },
      }) as ListAnswer;
    expect(page({ limit: 1 }).remaining).toBe(3);
    expect(page({ limit: 1, labelSelector: "app" }).remaining).toBeUndefined();
    expect(page({ limit: 4 }).continue).toBeUndefined();
    expect(page({ limit: 1, resourceVersion: "0" }).items).toHaveLength(4);
  });

  it("of a version that is forgotten are refused, with a token that goes on with today's", async () => {
    const { kube, store } = await withPods();
    const first = await kube.list(resources.pods, { signal, limit: 1 });
    await kube.delete(
      resources.pods,
      { namespace: "kube-system", name: "c" },
      { signal, gracePeriodSeconds: 0 },
    );
    store.compact(store.revision);
    const error = await kube.list(resources.pods, { signal, limit: 1, continue: first.continue ?? "" }).then(
      () => undefined,
      (e: unknown) => e as KubeApiError,
    );
    expect(error).toSatisfy(isExpired);
    const token = (error?.status.metadata as { continue?: string } | undefined)?.continue ?? "";
    expect(await names(kube, { continue: token })).toBe("bd");
  });

  const token = (parts: object) => Buffer.from(JSON.stringify(parts)).toString("base64url");

  it.each([
    ["garbage", /^invalid continue token: continue key is not valid: /],
    ["e30", /does not recognize this encoded version ""/],
    [token({ v: "x", rv: 1, start: "a" }), /does not recognize this encoded version "x"/],
    [token({ v: "meta.k8s.io/v1", rv: 0, start: "a" }), /incorrect encoded start resourceVersion/],
    [token({ v: "meta.k8s.io/v1", rv: "1", start: "a" }), /incorrect encoded start resourceVersion/],
    [token({ v: "meta.k8s.io/v1", rv: 1 }), /empty start key/],
  ])("are refused for the token %s", async (text, message) => {
    const { kube } = await withPods();
    await expect(names(kube, { continue: text })).rejects.toMatchObject({
      code: 400,
      message: expect.stringMatching(message),
    });
  });

  it("are carried by tokens as those of the reference are", async () => {
    const { kube, store } = await withPods();
    const page = await kube.list(resources.pods, { signal, limit: 3 });
    const decoded = JSON.parse(Buffer.from(page.continue ?? "", "base64url").toString());
    expect(decoded).toEqual({ v: "meta.k8s.io/v1", rv: store.revision, start: "kube-system/c\0" });
    const own = token({ v: "meta.k8s.io/v1", rv: -1, start: "a\0" });
    expect(await names(kube, { namespace: "default", continue: own })).toBe("b");
  });
});

describe("a list of a version", () => {
  it.each([
    [{ resourceVersion: "0" }, undefined],
    [{ resourceVersion: "1" }, undefined],
    [{ resourceVersion: "5", resourceVersionMatch: "Exact" }, undefined],
    [{ resourceVersion: "999" }, 504],
    [{ resourceVersion: "999", resourceVersionMatch: "Exact" }, 504],
    [{ resourceVersion: "0", resourceVersionMatch: "Exact" }, 422],
    [{ resourceVersion: "1", resourceVersionMatch: "Newer" }, 422],
    [{ resourceVersionMatch: "Exact" }, 422],
    [{ resourceVersion: "-1" }, 500],
    [{ resourceVersion: "99999999999999999999" }, 500],
    [{ sendInitialEvents: true }, 422],
    [{ resourceVersion: "0", limit: 1, resourceVersionMatch: "NotOlderThan" }, undefined],
  ])("%j is answered with %s", async (query, code) => {
    const { server } = await withPods();
    const list = () =>
      server.registry.handle({
        verb: "list",
        group: "",
        version: "v1",
        resource: "pods",
        query,
        user: { name: "t", groups: [] },
      });
    if (code === undefined) expect(list().type).toBe("list");
    else expect(list).toThrow(expect.objectContaining({ code }));
  });
});

describe("a read of one object", () => {
  it.each([
    [{ resourceVersion: "0" }, undefined],
    [{ resourceVersion: "1" }, undefined],
    [{ resourceVersion: "999" }, 504],
    [{ resourceVersion: "new" }, 500],
  ])("%j is answered with %s", async (query, code) => {
    const { server } = await withPods();
    const target = { group: "", version: "v1", resource: "pods", namespace: "default", name: "a" };
    const get = () =>
      server.registry.handle({ verb: "get", ...target, query, user: { name: "t", groups: [] } });
    if (code === undefined) expect(get().type).toBe("object");
    else expect(get).toThrow(expect.objectContaining({ code }));
  });
});
