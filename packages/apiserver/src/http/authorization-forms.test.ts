/** For every form of request path: the request needs the right that the form implies, and does nothing beyond it. */
import type { KubeObject } from "@longshore/kube";
import { beforeAll, describe, expect, it } from "vitest";
import { adminUser } from "../api/api-request.ts";
import { type Kind, tableKey } from "../api/kind.ts";
import { createApiServer } from "../api-server.ts";
import { memoryStore } from "../storage/object-store.ts";
import { aCustomKind } from "../testing/custom-kinds.ts";
import { type FakeSend, fakeExchange } from "../testing/fake-exchange.ts";
import {
  type FormKind,
  formMethods,
  type PathForm,
  pathForms,
  verbOfForm,
} from "../testing/request-forms.ts";
import { rightsOf } from "../testing/rights.ts";
import { aServer } from "../testing/world.ts";

/** Text in every stored object; it must not be in an answer to a user without the right to read the object. */
const mark = "a-mark-that-is-nowhere-else";
const verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy"];

function aWorld() {
  const { env } = aServer();
  const store = memoryStore();
  const server = createApiServer(env, {
    store,
    controllers: false,
    tokens: [{ token: "t", user: adminUser }],
    definitions: [aCustomKind("things", "Thing", "Namespaced"), aCustomKind("gadgets", "Gadget", "Cluster")],
  });
  const { context } = server.registry;
  const put = (of: Kind, object: KubeObject) => {
    const { namespace = "", name = "" } = object.metadata ?? {};
    store.commit([{ resource: tableKey(of), namespace, name, object: of.defaults?.(object) ?? object }]);
  };
  for (const of of context.kinds.all()) {
    if (of.virtual === true || of.readOnly === true || of.kind === "CustomResourceDefinition") continue;
    const [version] = of.versions;
    const apiVersion = of.group === "" ? version : `${of.group}/${version}`;
    for (const name of of.plural === "namespaces" ? ["a", "team", "other"] : ["a"]) {
      const metadata = {
        name,
        uid: "u",
        annotations: { mark },
        ...(of.namespaced ? { namespace: "team" } : {}),
      };
      put(of, { apiVersion, kind: of.kind, metadata });
    }
  }
  return {
    server,
    store,
    kinds: context.kinds.all(),
    rights: rightsOf(context),
    send: fakeExchange(env, server),
  };
}

const formKind = (of: Kind, version: string): FormKind => ({
  group: of.group,
  version,
  plural: of.plural,
  namespaced: of.namespaced,
  subresources: [...Object.keys(of.subresources ?? {}), ...(of.statusSubresource === true ? ["status"] : [])],
});

describe("every form of a request for every kind", () => {
  let world: ReturnType<typeof aWorld>;
  let forms: readonly (readonly [Kind, PathForm])[];
  beforeAll(() => {
    world = aWorld();
    forms = world.kinds.flatMap((of) =>
      of.versions
        .slice(0, 1)
        .flatMap((version) => pathForms(formKind(of, version)).map((form) => [of, form] as const)),
    );
    // What is tested is there to be found.
    expect(forms.length).toBeGreaterThan(1500);
  });

  /** Sends the request as the user. Returns a description of the problem, if there is one. */
  async function problemOf(
    user: string,
    [of, form]: readonly [Kind, PathForm],
    method: string,
    query: string,
    allowed: readonly number[],
  ): Promise<string | undefined> {
    const before = world.store.revision;
    const answer = await sendAs(world.send, user, of, method, `${form.path}${query}`);
    const shown = `${method} ${form.path}${query} as ${user}: ${answer.status} ${answer.body.slice(0, 150)}`;
    if (world.store.revision !== before) return `changes the store: ${shown}`;
    if (answer.body.includes(mark)) return `shows an object: ${shown}`;
    if (answer.body.includes('"token"')) return `shows a token: ${shown}`;
    return allowed.includes(answer.status) ? undefined : shown;
  }

  it("is refused to who has every right but the one that it takes", async () => {
    const problems: (string | undefined)[] = [];
    for (const [of, form] of forms) {
      for (const method of formMethods) {
        for (const query of method === "GET" || method === "DELETE" ? ["", "?watch=1"] : ["?watch=1"]) {
          const verb = verbOfForm(form, method, query !== "");
          const right = { verb, ...form.means };
          const user = world.rights.allBut(right, verbs);
          problems.push(await problemOf(user, [of, form], method, query, [403]));
        }
      }
    }
    expect(problems.length).toBeGreaterThan(10_000);
    expect(worst(problems)).toEqual([]);
  }, 60_000);

  it("does nothing with that right alone where nothing is served, whatever the right is for", async () => {
    const problems: (string | undefined)[] = [];
    for (const [of, form] of forms) {
      for (const method of formMethods.filter((one) => !form.methods.includes(one))) {
        const right = { verb: verbOfForm(form, method), ...form.means };
        if (right.verb === "") continue;
        problems.push(await problemOf(world.rights.only(right), [of, form], method, "", [404, 405]));
      }
    }
    expect(problems.length).toBeGreaterThan(5_000);
    expect(worst(problems)).toEqual([]);
  }, 60_000);

  it("is refused, of some kinds, to who has exactly one other right, whichever", async () => {
    const chosen = new Set([
      "pods",
      "nodes",
      "serviceaccounts",
      "namespaces",
      "deployments",
      "things",
      "gadgets",
    ]);
    const problems: (string | undefined)[] = [];
    let next = 0;
    for (const [of, form] of forms.filter(([{ plural }]) => chosen.has(plural))) {
      const [resource = ""] = form.means.resource.split("/");
      const others = verbs.flatMap((verb) => [
        { verb, ...form.means },
        { verb, ...form.means, resource },
        { verb, group: form.means.group, resource },
        { verb, group: form.means.group, resource, namespace: "other" },
      ]);
      for (const method of formMethods.slice(0, 6)) {
        const verb = verbOfForm(form, method);
        // One after the other, so that each meets many forms; all of them with all would take minutes.
        for (let tried = 0; tried < 4; tried++) {
          const right = others[next++ % others.length] as (typeof others)[number];
          if (covers(right, { verb, ...form.means })) continue;
          problems.push(await problemOf(world.rights.only(right), [of, form], method, "", [403]));
        }
      }
    }
    expect(problems.length).toBeGreaterThan(2_000);
    expect(worst(problems)).toEqual([]);
  }, 60_000);
});

/** Some of those that there are, and how many. */
function worst(problems: readonly (string | undefined)[]): readonly string[] {
  const found = problems.filter((problem) => problem !== undefined);
  return found.length <= 10 ? found : [...found.slice(0, 10), `and ${found.length - 10} more`];
}

interface Rightlike {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string;
}

/** Rights of these tests say no names: one of the cluster is one in each of its namespaces. */
function covers(right: Rightlike, asked: Rightlike): boolean {
  return (
    right.verb === asked.verb &&
    right.group === asked.group &&
    right.resource === asked.resource &&
    (right.namespace === undefined || right.namespace === asked.namespace)
  );
}

function sendAs(send: FakeSend, user: string, of: Kind, method: string, url: string) {
  const headers = {
    authorization: "Bearer t",
    "Impersonate-User": user,
    "impersonate-user": user,
    "impersonate-group": "system:unauthenticated",
    "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json",
    "x-http-method-override": "GET",
    "x-http-method": "GET",
  };
  const [version] = of.versions;
  const apiVersion = of.group === "" ? version : `${of.group}/${version}`;
  const name = method === "POST" ? "new" : "a";
  const body =
    method === "PATCH"
      ? { metadata: { labels: { changed: "yes" } } }
      : method === "DELETE" || method === "GET" || method === "HEAD"
        ? undefined
        : { apiVersion, kind: of.kind, metadata: { name } };
  return send(method, url, headers, body === undefined ? "" : JSON.stringify(body));
}
