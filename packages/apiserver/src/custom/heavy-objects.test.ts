/** Custom resources that are as much work as they can be made end with an answer, soon and in little memory. */
import { KubeApiError } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { adminUser } from "../api/api-request.ts";
import type { ApiServer } from "../api-server.ts";
import { asker } from "../testing/ask.ts";
import { heavyCustom, refusedCustom } from "../testing/heavy-requests/custom.ts";
import { corePath, type SendJson } from "../testing/heavy-requests/heavy-request.ts";
import { aServer } from "../testing/world.ts";

/** Asks the server in this process as its administrator. */
function sender(server: ApiServer): SendJson {
  const { ask } = asker(server, adminUser);
  const verbs = { POST: "create", PUT: "update" } as const;
  return async (method, path, body) => {
    await Promise.resolve();
    const isOfOne = path.endsWith("/one");
    const verb = method === "GET" ? (isOfOne ? "get" : "list") : verbs[method as "POST" | "PUT"];
    try {
      const answer = ask(verb, path.slice(1), body as object | undefined, { fromWire: true });
      return { status: method === "POST" ? 201 : 200, body: answer };
    } catch (error) {
      if (!(error instanceof KubeApiError)) throw error;
      return { status: error.code, body: error.status };
    }
  };
}

describe("a custom resource that is much work", () => {
  it.each(refusedCustom.map((request) => [request.name, request] as const))("%s", async (_name, request) => {
    const { server } = aServer();
    const answers: unknown[] = [];
    const send = sender(server);
    await request.prepare(send);
    const status = await request.run(async (...asked) => {
      const answer = await send(...asked);
      answers.push(answer.body);
      return answer;
    });
    expect(status).toBe(422);
    // The answer is no longer than what was asked.
    expect(JSON.stringify(answers).length).toBeLessThan(5_000_000);
    expect((await send("GET", corePath("configmaps"))).status).toBe(200);
  });

  it("has a unique name", () => {
    expect(new Set(heavyCustom.map(({ name }) => name)).size).toBe(heavyCustom.length);
  });
});
