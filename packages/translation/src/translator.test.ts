import fc from "fast-check";
import type * as core from "kubernetes-types/core/v1.js";
import type * as storage from "kubernetes-types/storage/v1.js";
import { describe, expect, test } from "vitest";
import { vectorCases } from "../../../scripts/vectors/location.ts";
import type { PersistentVolume, StorageClass, Volume } from "./index.ts";
import * as translation from "./index.ts";

interface Recorded {
  readonly id: string;
  readonly set: string;
  readonly op: string;
  readonly input: {
    readonly pv?: PersistentVolume;
    readonly volume?: Volume;
    readonly podNamespace?: string;
    readonly inTreePluginName?: string;
    readonly storageClass?: StorageClass;
  };
  readonly output?: PersistentVolume;
  readonly error?: string;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}

const translator = translation.createTranslator({ plugins: translation.allPlugins });
const json = (value: unknown) => JSON.parse(JSON.stringify(value));

function apply(op: string, input: Recorded["input"]): unknown {
  switch (op) {
    case "translateInTreePVToCSI":
      return translator.translateInTreePVToCSI(input.pv);
    case "translateCSIPVToInTree":
      return translator.translateCSIPVToInTree(input.pv);
    case "translateInTreeInlineVolumeToCSI":
      return translator.translateInTreeInlineVolumeToCSI(input.volume, input.podNamespace);
    default:
      return translator.translateInTreeStorageClassToCSI(input.inTreePluginName ?? "", input.storageClass);
  }
}

const translations = vectorCases<Recorded>("translation").filter(({ op }) => op.startsWith("translate"));
const accepted = translations.filter(
  ({ error, set, id }) => error === undefined && (set === "rbd" || !id.startsWith("rbd")),
);

describe("laws over all recorded inputs", () => {
  test("an input is never changed: frozen ones are accepted and stay as they are", () => {
    for (const { op, input } of accepted) {
      const before = JSON.stringify(input);
      apply(op, deepFreeze(input));
      expect(JSON.stringify(input)).toBe(before);
    }
    expect(accepted.length).toBeGreaterThan(2000);
  });

  test("explaining gives the very same answer, and says something", () => {
    for (const { op, input } of accepted) {
      if (op !== "translateInTreePVToCSI" || input.pv === undefined) continue;
      const { output, steps } = translator.explain.translateInTreePVToCSI(input.pv);
      expect(json(output)).toEqual(json(apply(op, input)));
      expect(steps.some(({ to }) => to === "spec.csi.volumeHandle")).toBe(true);
    }
  });

  test("to CSI and back is the identity wherever the recorded answers say so", () => {
    const backs = new Map(
      translations.filter(({ id }) => id.endsWith("/back")).map((vector) => [vector.id, vector]),
    );
    let identical = 0;
    for (const { id, op, input } of accepted) {
      const back = backs.get(`${id}/back`);
      if (op !== "translateInTreePVToCSI" || back?.output === undefined) continue;
      if (JSON.stringify(back.output) !== JSON.stringify(input.pv)) continue;
      const roundTrip = translator.translateCSIPVToInTree(translator.translateInTreePVToCSI(input.pv));
      expect(json(roundTrip), id).toEqual(input.pv);
      identical += 1;
    }
    expect(identical).toBeGreaterThan(50);
  });

  test("a refusal is a typed error that names object, problem and remedy", () => {
    for (const { op, input, error, set, id } of translations) {
      if (error === undefined || (set === "core" && id.startsWith("rbd"))) continue;
      try {
        apply(op, input);
        // Refused by the seven-plugin library only.
        expect(JSON.stringify(input)).toContain("rbd");
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(translation.TranslationError);
        const { object, problem, remedy } = thrown as translation.TranslationError;
        expect([object, problem, remedy].every((text) => text !== "")).toBe(true);
      }
    }
  });
});

const anyMember = fc.dictionary(fc.stringMatching(/^x[a-z]{1,8}$/), fc.jsonValue(), { maxKeys: 4 });
const sources: fc.Arbitrary<Partial<NonNullable<PersistentVolume["spec"]>>> = fc.oneof(
  fc.record({ awsElasticBlockStore: fc.record({ volumeID: fc.constant("vol-1"), partition: fc.nat(64) }) }),
  fc.record({
    gcePersistentDisk: fc.record({ pdName: fc.stringMatching(/^[a-z]{1,9}$/), fsType: fc.constant("ext4") }),
  }),
  fc.record({ cinder: fc.record({ volumeID: fc.string({ minLength: 1 }) }) }),
  fc.record({ vsphereVolume: fc.record({ volumePath: fc.string() }) }),
  fc.record({ portworxVolume: fc.record({ volumeID: fc.string() }) }),
  fc.record({ rbd: fc.record({ image: fc.string(), monitors: fc.array(fc.string()), pool: fc.string() }) }),
);
const volumes = fc.tuple(anyMember, anyMember, sources, anyMember).map(([top, spec, source, metadata]) =>
  deepFreeze({
    kind: "PersistentVolume",
    ...top,
    metadata: { name: "pv", inner: metadata },
    spec: { ...spec, ...source },
  }),
);

describe("laws over generated volumes", () => {
  test("untouched parts of the output are the objects of the input", () => {
    fc.assert(
      fc.property(volumes, (pv) => {
        const csi = translator.translateInTreePVToCSI(pv as PersistentVolume) as unknown as typeof pv;
        expect(csi.metadata).toBe(pv.metadata);
        for (const [name, value] of Object.entries(pv.spec)) {
          if (name in csi.spec) expect((csi.spec as Record<string, unknown>)[name]).toBe(value);
        }
        for (const [name, value] of Object.entries(pv)) {
          if (name !== "spec") expect((csi as Record<string, unknown>)[name]).toBe(value);
        }
      }),
    );
  });

  test("to CSI, back and to CSI again changes nothing more", () => {
    fc.assert(
      fc.property(volumes, (pv) => {
        // A vSphere volume learns its path from the driver, which does not run here.
        fc.pre(!("vsphereVolume" in pv.spec));
        const once = translator.translateInTreePVToCSI(pv as PersistentVolume);
        const again = translator.translateInTreePVToCSI(translator.translateCSIPVToInTree(once));
        const { staticVolume: _, ...attributes } = json(once).spec.csi.volumeAttributes ?? {};
        const { csi } = json(again).spec;
        expect(csi.volumeHandle).toBe(once.spec?.csi?.volumeHandle);
        expect(csi.volumeAttributes ?? {}).toMatchObject(attributes);
      }),
    );
  });
});

describe("affinity", () => {
  const expression = { key: "topology.kubernetes.io/zone", operator: "In", values: ["us-east-1a"] };
  const other = { key: "kubernetes.io/arch", operator: "In", values: ["arm64"] };
  const spec = {
    awsElasticBlockStore: { volumeID: "vol-1" },
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [other, expression] }, { matchExpressions: [other] }],
      },
    },
  };

  test("only the requirement whose key changes is a new object", () => {
    const terms = translator.translateInTreePVToCSI({ spec }).spec.nodeAffinity.required.nodeSelectorTerms;
    expect(terms[1]).toBe(spec.nodeAffinity.required.nodeSelectorTerms[1]);
    expect(terms[0]?.matchExpressions[0]).toBe(other);
    expect(terms[0]?.matchExpressions[1]).toEqual({ ...expression, key: "topology.ebs.csi.aws.com/zone" });
    expect(terms[0]?.matchExpressions[1]?.values).toBe(expression.values);
  });

  test("a class that needs no change is returned as it is", () => {
    const storageClass = deepFreeze({
      provisioner: "kubernetes.io/cinder",
      parameters: { availability: "nova" },
    });
    expect(translator.translateInTreeStorageClassToCSI("kubernetes.io/cinder", storageClass)).toBe(
      storageClass,
    );
  });
});

describe("the package", () => {
  test("exports every function of the design under its name, and its later names", () => {
    expect(translation.translateInTreeInlineVolumeToPVSpec).toBe(
      translation.translateInTreeInlineVolumeToCSI,
    );
    expect(translation.isMigratableByName).toBe(translation.isMigratableIntreePluginByName);
    expect(translation.getCSINameFromIntreeName).toBe(translation.getCSINameFromInTreeName);
    expect(translation.isMigratedCSIDriverByName("rbd.csi.ceph.com")).toBe(true);
    expect(translation.getInTreeNameFromCSIName("ebs.csi.aws.com")).toBe("kubernetes.io/aws-ebs");
    expect(translation.repairVolumeHandle("ebs.csi.aws.com", "vol-1", "i-1")).toBe("vol-1");
    expect(translation.getInTreePluginNameFromSpec(null, { rbd: { image: "i" } })).toBe("kubernetes.io/rbd");
  });

  test("a translator of some plugins knows no others, and no plugin twice", () => {
    const { awsEbs } = translation;
    const some = translation.createTranslator({ plugins: [awsEbs] });
    expect(some.isInlineMigratable({ awsElasticBlockStore: { volumeID: "v" } })).toBe(true);
    expect(some.isInlineMigratable({ cinder: { volumeID: "v" } })).toBe(false);
    expect(() => some.getCSINameFromInTreeName("kubernetes.io/cinder")).toThrow(
      "known plugins: kubernetes.io/aws-ebs",
    );
    expect(() => translation.createTranslator({ plugins: [awsEbs, awsEbs] })).toThrow(
      translation.TranslationError,
    );
  });

  test("gates are those of Kubernetes, with the names of the plugins", () => {
    expect(translation.migrationGates).toHaveLength(8);
    expect(translation.migrationGates[0]).toEqual({
      inTreeName: "kubernetes.io/aws-ebs",
      driverName: "ebs.csi.aws.com",
      gate: "CSIMigrationAWS",
      completeGate: "CSIMigrationAWSComplete",
      topologyKey: "topology.ebs.csi.aws.com/zone",
    });
    expect(translation.migrationGates.map(({ gate }) => gate)).toContain("CSIMigrationvSphere");
  });

  test("objects of the Kubernetes types go in and come out as such", () => {
    const pv: core.PersistentVolume = { kind: "PersistentVolume", spec: { cinder: { volumeID: "v" } } };
    const translated: core.PersistentVolume = translation.translateInTreePVToCSI(pv);
    const storageClass: storage.StorageClass = {
      provisioner: "kubernetes.io/aws-ebs",
      parameters: { fsType: "xfs" },
    };
    const changed: storage.StorageClass = translation.translateInTreeStorageClassToCSI(
      "kubernetes.io/aws-ebs",
      storageClass,
    );
    const volume: core.Volume = { name: "v", azureDisk: { diskName: "d", diskURI: "u" } };
    expect(translated.spec?.csi?.volumeHandle).toBe("v");
    expect(changed.parameters).toEqual({ "csi.storage.k8s.io/fstype": "xfs" });
    expect(translation.isInlineMigratable(volume)).toBe(true);
  });

  test("an explanation names the value a hash was computed from", () => {
    const { steps } = translation.explain.translateInTreePVToCSI({
      spec: { rbd: { image: "i", monitors: ["a", "b"] } },
    });
    expect(steps.find(({ to }) => to === "spec.csi.volumeAttributes[clusterID]")).toMatchObject({
      from: "spec.rbd.monitors",
      hashOf: "a,b",
      value: "b345e1dc09f20fdefdea469f09167892",
    });
  });

  test("a name from an object's prototype is no plugin and no annotation", () => {
    expect(translation.isMigratableIntreePluginByName("toString")).toBe(false);
    const parameters = JSON.parse('{"__proto__":"x","constructor":"y"}');
    const out = translation.translateInTreeStorageClassToCSI("kubernetes.io/aws-ebs", {
      provisioner: "p",
      parameters: { ...parameters, fsType: "xfs" },
    });
    expect(Object.keys(out.parameters).sort()).toEqual([
      "__proto__",
      "constructor",
      "csi.storage.k8s.io/fstype",
    ]);
  });
});

test.each([
  ["kubernetes.io/aws-ebs", "vol-1", { awsElasticBlockStore: { volumeID: "vol-1" } }],
  ["kubernetes.io/cinder", "disk-1", { cinder: { volumeID: "disk-1" } }],
  ["kubernetes.io/vsphere-volume", "[ds] a.vmdk", { vsphereVolume: { volumePath: "[ds] a.vmdk" } }],
  ["kubernetes.io/portworx-volume", "px-1", { portworxVolume: { volumeID: "px-1" } }],
])("the volume name of %s says which disk it is", (plugin, name, spec) => {
  expect(translation.inTreePVOfVolumeName(plugin, name)).toEqual({ metadata: { name: "" }, spec });
});

test.each([
  "kubernetes.io/gce-pd",
  "kubernetes.io/azure-disk",
  "kubernetes.io/rbd",
  "kubernetes.io/nfs",
  "x",
])("the volume name of %s does not", (plugin) =>
  expect(translation.inTreePVOfVolumeName(plugin, "a")).toBeUndefined(),
);
