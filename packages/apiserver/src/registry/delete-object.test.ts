import { expect, it } from "vitest";
import { adminUser } from "../api/api-request.ts";
import { asker } from "../testing/ask.ts";
import { aServer } from "../testing/world.ts";

const classes = "apis/scheduling.k8s.io/v1/priorityclasses";

it("keeps the priority classes of the system from deletion by name, and no others", () => {
  const admin = asker(aServer().server, adminUser);
  admin.ask("create", classes, { metadata: { name: "mine" }, value: 1 });
  for (const name of ["system-node-critical", "system-cluster-critical"]) {
    expect(admin.outcome("delete", `${classes}/${name}`)).toBe(
      `403 priorityclasses.scheduling.k8s.io "${name}" is forbidden: this is a system priority class and cannot be deleted`,
    );
  }
  expect(admin.outcome("delete", `${classes}/mine`)).toBe("ok");
});
