import { it } from "vitest";
import { expectOrders } from "../testing/expect-orders.ts";

it("node-only: every order of flips of two plugins on two nodes under work, as documented (migration-controllers.md C3)", () =>
  expectOrders("node-only"));
