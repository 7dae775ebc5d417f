/** PostgreSQL as the workload of a StatefulSet: its programs on this machine, and its objects. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Container, Pod, Secret, StatefulSet } from "@longshore/kube";
import { mayMount } from "@longshore/local";

const packagesDirectory = "/usr/lib/postgresql";
const neededPrograms = [
  ...["initdb", "postgres", "psql", "pg_isready", "pg_ctl"],
  // Of the server's package, too: they judge what a server has left on its disk.
  ...["pg_checksums", "pg_amcheck"],
];

/** The directory of PostgreSQL's programs, as Debian's packages install them, the newest version; undefined where none is. */
export function postgresqlPrograms(): string | undefined {
  const named = process.env.LONGSHORE_POSTGRESQL;
  const versions = existsSync(packagesDirectory) ? readdirSync(packagesDirectory) : [];
  const installed = versions
    .sort((a, b) => Number(b) - Number(a))
    .map((v) => join(packagesDirectory, v, "bin"));
  return (named === undefined ? installed : [named]).find((directory) =>
    neededPrograms.every((program) => existsSync(join(directory, program))),
  );
}

/** Why PostgreSQL cannot be a workload on this machine; undefined when it can. */
export function reasonAgainstPostgresql(): string | undefined {
  if (!mayMount()) return "real volumes need root, loop devices and a mount namespace";
  if (postgresqlPrograms() === undefined) return `no PostgreSQL in ${packagesDirectory}/VERSION/bin`;
  if (!/^postgres:/m.test(readFileSync("/etc/passwd", "utf8")))
    return "there is no user `postgres` to run it as";
  return undefined;
}

/** What a server is run with. */
export interface PostgresqlOptions {
  readonly programs: string;
  /** TCP port of the loopback interface, which the pods share with the machine. */
  readonly port: number;
  readonly volumeMode: "Filesystem" | "Block";
}

const namespace = "default";
const secretName = "postgresql";
const labels = { app: "postgresql" };
/** The device of a raw block claim, as the container sees it. */
const devicePath = "/dev/disk-of-postgresql";

/** The StatefulSet's name, that of its only pod and of its claim. */
export const postgresql = {
  set: { namespace, name: "postgresql" },
  pod: { namespace, name: "postgresql-0" },
  claim: { namespace, name: "data-postgresql-0" },
} as const;

/** Its password. */
export function postgresqlSecret(password: string): Secret {
  const data = { password: Buffer.from(password).toString("base64") };
  return { apiVersion: "v1", kind: "Secret", metadata: { namespace, name: secretName }, data };
}

// PostgreSQL refuses to run as root.
const asPostgres = "setpriv --reuid=postgres --regid=postgres --clear-groups";

/**
 * Brings the volume's file system to /data. A raw block volume gets one, once: mkfs.ext4 writes its superblock last, so that one
 * that was killed is begun again. The mount lies in the container's own namespace and ends with it.
 */
const prepare = {
  Filesystem: "",
  Block: `
    mkdir -p /data
    blkid -p ${devicePath} > /dev/null || mkfs.ext4 -q ${devicePath}
    mount -t ext4 ${devicePath} /data`,
};

/** The first start fills a directory beside the data directory, which is renamed once it is whole and on the disk. */
const initialise = `
  if [ ! -e /data/pgdata ]; then
    rm -rf /data/new
    mkdir -m 700 /data/new
    chown postgres /data/new
    (umask 077; printf %s "$PGPASSWORD" > /tmp/password)
    chown postgres /tmp/password
    ${asPostgres} initdb -D /data/new --data-checksums --wal-segsize=1 --no-locale -E UTF8 \\
      --auth=scram-sha-256 --pwfile=/tmp/password
    rm /tmp/password
    mv /data/new /data/pgdata
    sync /data
  fi`;

/** The server's settings. Everything it keeps lies in its data directory: no socket and no shared memory file beside it. */
const settings = (port: number) =>
  Object.entries({
    port,
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    fsync: "on",
    synchronous_commit: "on",
    full_page_writes: "on",
    dynamic_shared_memory_type: "mmap",
    shared_buffers: "16MB",
    max_connections: 10,
    checkpoint_timeout: "30s",
  }).map(([name, value]) => `-c ${name}=${value}`);

/** A container that runs a script on the claim's volume. */
function container(
  name: string,
  { programs, port, volumeMode }: PostgresqlOptions,
  script: string,
): Container {
  return {
    name,
    image: "host",
    command: ["/bin/sh", "-euc", `${prepare[volumeMode]}\n${script}`],
    env: [
      { name: "PATH", value: `${programs}:/usr/sbin:/usr/bin:/sbin:/bin` },
      { name: "PGHOST", value: "127.0.0.1" },
      { name: "PGPORT", value: String(port) },
      { name: "PGUSER", value: "postgres" },
      { name: "PGDATABASE", value: "postgres" },
      { name: "PGPASSWORD", valueFrom: { secretKeyRef: { name: secretName, key: "password" } } },
    ],
    ...(volumeMode === "Block"
      ? { volumeDevices: [{ name: "data", devicePath }] }
      : { volumeMounts: [{ name: "data", mountPath: "/data" }] }),
  };
}

/** One server, on a claim of the in-tree class. */
export function postgresqlSet(options: PostgresqlOptions): StatefulSet {
  const server = `${initialise}
    exec ${asPostgres} postgres -D /data/pgdata ${settings(options.port).join(" ")}`;
  // SIGTERM lets clients stay as long as they like; SIGINT ends their sessions and writes a checkpoint.
  const stop = ["/bin/sh", "-c", "kill -INT $(head -n 1 /data/pgdata/postmaster.pid)"];
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: postgresql.set,
    spec: {
      serviceName: "postgresql",
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 30,
          containers: [
            {
              ...container("postgresql", options, server),
              readinessProbe: { exec: { command: ["pg_isready", "-q"] }, periodSeconds: 1 },
              lifecycle: { preStop: { exec: { command: stop } } },
            },
          ],
        },
      },
      volumeClaimTemplates: [
        {
          metadata: { name: "data" },
          spec: {
            accessModes: ["ReadWriteOnce"],
            storageClassName: "gp2",
            volumeMode: options.volumeMode,
            resources: { requests: { storage: "1Gi" } },
          },
        },
      ],
    },
  };
}

/** The lines of a reader's log between which the ledger's rows lie. */
export const ledgerMarks = { begin: "ledger begins", end: "ledger ends" } as const;

/**
 * A pod that judges the stopped server's volume and prints the ledger: every page of every file against its checksum, then every
 * index against its table, then every row by a scan of the table itself. It fails when one of these does.
 */
export function ledgerReader(options: PostgresqlOptions): Pod {
  const script = `
    ${asPostgres} pg_checksums --check -D /data/pgdata
    ${asPostgres} pg_ctl start --silent -w -D /data/pgdata -l /data/pgdata/reader.log -o "${settings(options.port).join(" ")}"
    pg_amcheck --all --install-missing --heapallindexed --rootdescend
    echo "${ledgerMarks.begin}"
    psql -X -q -A -t -v ON_ERROR_STOP=1 -c "SET enable_indexscan = off; SET enable_indexonlyscan = off;
      SET enable_bitmapscan = off; SELECT line FROM ledger"
    echo "${ledgerMarks.end}"
    ${asPostgres} pg_ctl stop --silent -w -m fast -D /data/pgdata`;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace, name: "reader" },
    spec: {
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 1,
      containers: [container("reader", options, script)],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: postgresql.claim.name } }],
    },
  };
}
