import type { PersistentVolume, PersistentVolumeClaim, VolumeAttributesClass } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import type { Attempt } from "./claim-memory.ts";
import { type ModifyGoal, modifyGoal } from "./modify-goal.ts";

const driver = { name: "ebs.csi.aws.com" };

interface Classes {
  readonly wanted?: string;
  readonly current?: string;
  readonly target?: string;
  readonly state?: string;
  readonly conditions?: readonly string[];
}

const classes: Record<string, VolumeAttributesClass> = {
  gold: { driverName: driver.name, parameters: { iops: "9000" } },
  silver: { driverName: driver.name, parameters: { iops: "3000" } },
  foreign: { driverName: "pd.csi.storage.gke.io", parameters: {} },
};

function decide(given: Classes, attempt: Attempt = {}, over: Partial<PersistentVolume["spec"]> = {}) {
  const { wanted, current, target, state, conditions = [] } = given;
  const modifyVolumeStatus =
    state === undefined
      ? {}
      : { modifyVolumeStatus: { targetVolumeAttributesClassName: target ?? "", status: state } };
  const claim: PersistentVolumeClaim = {
    metadata: { name: "data", namespace: "default", uid: "u-1" },
    spec: {
      volumeName: "pv-1",
      ...(wanted === undefined ? {} : { volumeAttributesClassName: wanted }),
    },
    status: {
      phase: "Bound",
      ...(current === undefined ? {} : { currentVolumeAttributesClassName: current }),
      ...modifyVolumeStatus,
      conditions: conditions.map((type) => ({ type, status: "True" })),
    },
  };
  const spec = {
    claimRef: { namespace: "default", name: "data", uid: "u-1" },
    csi: { driver: driver.name, volumeHandle: "vol-1" },
    ...over,
  } as NonNullable<PersistentVolume["spec"]>;
  const volume: PersistentVolume = { metadata: { name: "pv-1" }, spec };
  return modifyGoal({
    driver,
    claim,
    volume,
    attempt,
    classes,
    nowMs: 100,
  });
}

const none: ModifyGoal = { kind: "none" };
const modify = (className: string, begin = true): ModifyGoal => ({
  kind: "modify",
  className,
  parameters: classes[className]?.parameters ?? {},
  begin,
});

describe("the class to apply", () => {
  it.each<[string, Classes, ModifyGoal]>([
    ["names none", {}, none],
    ["has what it names", { wanted: "gold", current: "gold" }, none],
    [
      "has what it names, with an empty state left behind",
      { wanted: "gold", current: "gold", target: "gold", state: "" },
      none,
    ],
    ["names its first", { wanted: "gold" }, modify("gold")],
    ["names another", { wanted: "gold", current: "silver" }, modify("gold")],
    [
      "was begun, and may be under way",
      { wanted: "gold", current: "silver", target: "gold", state: "InProgress" },
      modify("gold", false),
    ],
    [
      "was begun with one, and names another by now: the first may be applied in part",
      { wanted: "silver", target: "gold", state: "InProgress" },
      modify("gold", false),
    ],
    [
      "went back while the other may be under way",
      { wanted: "silver", current: "silver", target: "gold", state: "InProgress" },
      modify("gold", false),
    ],
    [
      "went back from what was impossible: it is applied again",
      { wanted: "silver", current: "silver", target: "gold", state: "Infeasible" },
      modify("silver"),
    ],
    [
      "names another after what was impossible",
      { wanted: "silver", target: "gold", state: "Infeasible" },
      modify("silver"),
    ],
    [
      "was begun with a class that is gone",
      { wanted: "silver", target: "deleted", state: "InProgress" },
      modify("silver"),
    ],
    [
      "names a class that does not exist",
      { wanted: "missing", current: "silver" },
      { kind: "pending", className: "missing", isSaid: false },
    ],
    [
      "waits for its class",
      { wanted: "missing", target: "missing", state: "Pending" },
      { kind: "pending", className: "missing", isSaid: true },
    ],
    ["has got the class it waited for", { wanted: "gold", target: "gold", state: "Pending" }, modify("gold")],
    [
      "names a class of another driver",
      { wanted: "foreign" },
      { kind: "foreign", className: "foreign", driverName: "pd.csi.storage.gke.io" },
    ],
    [
      "names none any more, after what was impossible",
      { target: "gold", state: "Infeasible", conditions: ["ModifyVolumeError"] },
      { kind: "cancel" },
    ],
    ["was cancelled", { target: "gold", state: "Infeasible" }, none],
    [
      "names none any more while one may be under way",
      { target: "gold", state: "InProgress" },
      modify("gold", false),
    ],
  ])("of a claim that %s", (_, given, step) => expect(decide(given)).toEqual(step));

  it("changes once the driver has surely refused the one that was begun", () => {
    const given = { wanted: "silver", current: "silver", target: "gold", state: "InProgress" };
    expect(decide(given, { refused: true })).toEqual(modify("silver"));
  });

  it("is not tried again soon when it is impossible", () => {
    const given = { wanted: "gold", target: "gold", state: "Infeasible" };
    const attempt = { refused: true, infeasible: { request: "gold", untilMs: 300 } };
    expect(decide(given, attempt)).toEqual({ kind: "wait", delayMs: 200 });
    expect(decide({ ...given, wanted: "silver" }, attempt)).toEqual(modify("silver"));
  });

  it("has no goal for volumes of others", () => {
    expect(decide({ wanted: "gold" }, {}, { csi: { driver: "x", volumeHandle: "v" } } as never)).toEqual(
      none,
    );
    expect(decide({ wanted: "gold" }, {}, { claimRef: { uid: "u-2" } } as never)).toEqual(none);
    expect(decide({ wanted: "gold" }, {}, { csi: undefined } as never)).toEqual(none);
  });
});
