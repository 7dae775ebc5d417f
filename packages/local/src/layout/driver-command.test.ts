import { expect, test } from "vitest";
import { clusterConfig, type OwnDriver } from "./cluster-config.ts";
import { clusterLayout } from "./cluster-layout.ts";
import {
  commandText,
  commandWords,
  controllerPlace,
  DriverCommandError,
  driverArgv,
  driverValues,
  ownDriverPlaces,
} from "./driver-command.ts";

test.each<[string, readonly string[]]>([
  ["driver --a b", ["driver", "--a", "b"]],
  ["  driver\t--a  ", ["driver", "--a"]],
  [`"my driver" --a='b c' ''`, ["my driver", "--a=b c", ""]],
  ["", []],
])("the words of %s", (text, words) => {
  expect(commandWords(text)).toEqual(words);
});

test("what differs from place to place is filled in", () => {
  const config = clusterConfig(2, "unprivileged");
  const layout = clusterLayout("/c");
  const command = ["driver", "--at={endpoint}", "{services}/{node}/{node-id}/{zone}", "{state-dir}", "{}"];
  expect(driverArgv(command, driverValues(config, layout, controllerPlace))).toEqual([
    "driver",
    "--at=unix:///c/d/controller.sock",
    "controller/controller/controller/us-east-1a",
    "/c/d",
    "{}",
  ]);
  expect(driverArgv(command, driverValues(config, layout, "node-2"))).toEqual([
    "driver",
    "--at=unix:///c/d/node-2.sock",
    "node/node-2/i-00000000000000002/us-east-1b",
    "/c/d",
    "{}",
  ]);
});

test("a driver whose volumes each node makes runs on the nodes alone, whole", () => {
  const config = clusterConfig(2, "unprivileged", {
    ownDriver: { name: "d.example.com", command: [], nodeDeployment: true },
  });
  expect(ownDriverPlaces(config)).toEqual(["node-1", "node-2"]);
  expect(driverValues(config, clusterLayout("/c"), "node-1").services).toBe("all");
  const { nodeDeployment: _, ...central } = config.ownDriver as OwnDriver;
  expect(ownDriverPlaces({ ...config, ownDriver: central })).toEqual([controllerPlace, "node-1", "node-2"]);
  expect(ownDriverPlaces(clusterConfig(1, "unprivileged"))).toEqual([]);
});

test.each([
  ["no program", [], "name its program"],
  ["nothing that says where to listen", ["driver"], "put {endpoint}"],
  [
    "a placeholder that is none",
    ["driver", "{endpoint}", "{sock}"],
    "{sock} in the driver's command is not known",
  ],
])("a command with %s is refused", (_, command, expected) => {
  const values = driverValues(clusterConfig(1, "unprivileged"), clusterLayout("/c"), controllerPlace);
  expect(() => driverArgv(command, values)).toThrow(DriverCommandError);
  expect(() => driverArgv(command, values)).toThrow(expected);
});

test("the text of a command is read as its words again", () => {
  const words = ["/bin/a b", "--say", `it's "this"`, "", "{endpoint}"];
  expect(commandWords(commandText(words))).toEqual(words);
});
