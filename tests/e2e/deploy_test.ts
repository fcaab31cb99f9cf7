import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { parse, parseAllDocuments } from "yaml";
import { needs } from "../support/needs.ts";

const read = (file: string) =>
  Deno.readTextFileSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)));

// deno-lint-ignore no-explicit-any
type Resource = any;

/** Validators of all kinds, made from Kubernetes' own schemas. */
const MODELS = "kubernetes-models/_schemas";
const reachable = await import("kubernetes-models/_schemas/IoK8sApiCoreV1Service")
  .then(() => true, () => false);

/** The resources of a file; those of a `List` one by one. */
function resources(file: string): Resource[] {
  return parseAllDocuments(read(file), { merge: true }).flatMap((document) => {
    assert.deepEqual(document.errors, [], file);
    const resource = document.toJS();
    return resource.kind === "List" ? resource.items : [resource];
  });
}

/** What Kubernetes rejects in a resource, and the fields that it does not know, as `kubeconform -strict` does. */
async function mistakes(resource: Resource): Promise<string[]> {
  const group = resource.apiVersion.includes("/")
    ? resource.apiVersion
    : `core/${resource.apiVersion}`;
  const name = group.split("/").map((part: string) => part[0]!.toUpperCase() + part.slice(1)).join(
    "",
  );
  const { validate } = await import(`${MODELS}/IoK8sApi${name}${resource.kind}`);
  const unread = new Map<object, Set<string>>();
  const watched = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(watched);
    const names = new Set(Object.keys(value));
    const entries = Object.entries(value).map(([key, value]) => [key, watched(value)]);
    const proxy = new Proxy(Object.fromEntries(entries), {
      get(target, key) {
        names.delete(String(key));
        return Reflect.get(target, key);
      },
    });
    unread.set(proxy, names);
    return proxy;
  };
  validate(watched(resource));
  return [
    ...(validate.errors ?? []).map(({ instancePath, keyword, params }: Resource) =>
      `${instancePath} ${keyword} ${JSON.stringify(params)}`
    ),
    ...[...unread.values()].flatMap((names) => [...names]).map((name) => `unknown field ${name}`),
  ];
}

for (const file of ["deploy/kubernetes.yaml", "deploy/kubernetes.postgres.yaml"]) {
  Deno.test({
    name: `${file} has only what the schemas of Kubernetes allow`,
    ...needs("the schemas of Kubernetes cannot be fetched", reachable),
    fn: async () => {
      for (const resource of resources(file)) {
        assert.deepEqual(
          await mistakes(resource),
          [],
          `${resource.kind} ${resource.metadata.name}`,
        );
      }
    },
  });
}

Deno.test({
  name: "the schemas of Kubernetes find a missing, a wrong and an unknown field",
  ...needs("the schemas of Kubernetes cannot be fetched", reachable),
  fn: async () => {
    const found = resources("deploy/kubernetes.yaml").find(({ kind }) => kind === "Deployment");
    delete found.spec.selector;
    found.spec.replicas = "two";
    found.spec.template.spec.containers[0].prots = [];
    const faults = (await mistakes(found)).join("; ");
    for (
      const fault of [
        '"missingProperty":"selector"',
        '/spec/replicas type {"type":"integer"}',
        "unknown field prots",
      ]
    ) {
      assert.ok(faults.includes(fault), faults);
    }
  },
});

Deno.test("compose files run the image with a read-only root, without capabilities, and on this machine only", () => {
  for (const name of ["compose.yaml", "compose.jobs.yaml", "compose.fleet.yaml"]) {
    const { services, volumes } = parse(read(`deploy/${name}`), { merge: true });
    const worktrees = new Set<string>();
    for (const [service, about] of Object.entries<Record<string, unknown>>(services)) {
      const { image, user, read_only, cap_drop, ports = [], volumes: mounts } = about;
      assert.deepEqual([image, user], ["${SVC_IMAGE:-svc}", "${SVC_USER:-10001:0}"], service);
      assert.deepEqual([read_only, cap_drop], [true, ["ALL"]]);
      for (const port of ports as string[]) assert.match(port, /^127\.0\.0\.1:\d+:8787$/);
      const [worktree, home] = mounts as [{ target: string }, string];
      assert.match(worktree.target, /^\/work(\/|$)/);
      assert.ok(Object.hasOwn(volumes, home.replace(/:\/home\/svc$/, "")));
      // What is trusted is kept in the home, by the path of the worktree.
      assert.ok(!worktrees.has(`${home} ${worktree.target}`), service);
      worktrees.add(`${home} ${worktree.target}`);
      const { SVC_PATH = "/work" } = (about.environment ?? {}) as Record<string, string>;
      assert.deepEqual([SVC_PATH, about.working_dir ?? "/work"], Array(2).fill(worktree.target));
    }
  }
});

Deno.test("the Kubernetes manifest asks /health, runs as the user of the image and requires a token", () => {
  const documents = parseAllDocuments(read("deploy/kubernetes.yaml")).map((each) => {
    assert.deepEqual(each.errors, []);
    return each.toJS();
  });
  const of = (kind: string) => documents.find((each) => each.kind === kind);
  const { spec } = of("Deployment").spec.template;
  const [container] = spec.containers;
  assert.deepEqual([spec.securityContext.runAsUser, spec.securityContext.runAsGroup], [10001, 0]);
  assert.equal(container.securityContext.readOnlyRootFilesystem, true);
  for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
    assert.equal(container[probe].httpGet.path, "/health");
  }
  const volumes = spec.volumes.map(({ name }: { name: string }) => name).sort();
  assert.deepEqual(
    volumes,
    container.volumeMounts.map((each: { name: string }) => each.name).sort(),
  );
  const settings = parse(of("ConfigMap").data["config.json"].replace(/^ *\/\/.*$/gm, ""));
  assert.equal(settings.serve.token_file, "/home/svc/.config/svc/serve.tokens");
  // Nothing else can choose them: the folder of the settings is read-only.
  assert.deepEqual([settings.provider, settings.model], ["PROVIDER", "MODEL"]);
  assert.ok(settings.serve.grace < spec.terminationGracePeriodSeconds);
});

Deno.test("the PostgreSQL manifests drain pods in time, and take the URL of the database from a secret alone", () => {
  const all = resources("deploy/kubernetes.postgres.yaml");
  const of = (kind: string, name: string) =>
    all.find((each) => each.kind === kind && each.metadata.name === name);
  const settings = parse(
    of("ConfigMap", "svc").data["config.json"].replace(/^ *\/\/.*$/gm, ""),
  );
  assert.deepEqual([settings.provider, settings.model], ["PROVIDER", "MODEL"]);
  for (const name of ["svc-server", "svc-worker"]) {
    const { replicas, selector, template: { metadata, spec } } = of("Deployment", name).spec;
    assert.deepEqual(selector.matchLabels, metadata.labels);
    assert.equal(replicas === undefined, of("HorizontalPodAutoscaler", name) !== undefined);
    for (const drain of [settings.jobs.grace, settings.serve.grace]) {
      assert.ok(drain + 10 <= spec.terminationGracePeriodSeconds);
    }
    assert.equal(spec.securityContext.runAsNonRoot, true);
    for (const container of [...spec.initContainers ?? [], ...spec.containers]) {
      const { securityContext, env, resources, volumeMounts, readinessProbe, ports } = container;
      assert.deepEqual(securityContext.capabilities, { drop: ["ALL"] });
      assert.equal(securityContext.readOnlyRootFilesystem, true);
      assert.equal(securityContext.allowPrivilegeEscalation, false);
      // The home of a pod cannot keep what is trusted, and its worktree is empty.
      assert.deepEqual(env, [
        {
          name: "SVC_STORE",
          valueFrom: { secretKeyRef: { name: "svc-postgres", key: "uri" } },
        },
        { name: "SVC_TRUST", value: "1" },
      ]);
      assert.ok(resources.requests.cpu && resources.limits.memory);
      for (const { name } of volumeMounts) {
        assert.ok(spec.volumes.some((volume: Resource) => volume.name === name), name);
      }
      if (ports !== undefined) assert.equal(readinessProbe.httpGet.path, "/ready");
    }
    assert.deepEqual(of("PodDisruptionBudget", name).spec.selector, selector);
  }
  const { scaleTargetRef, metrics } = of("HorizontalPodAutoscaler", "svc-worker").spec;
  assert.equal(scaleTargetRef.name, "svc-worker");
  assert.equal(metrics[0].external.metric.name, "svc_queue_depth");
  assert.deepEqual(of("Service", "svc").spec.selector, { app: "svc-server" });
});

Deno.test("the compose file with PostgreSQL has a scheduler, a server and three workers on one store", () => {
  const { services, secrets, volumes } = parse(read("deploy/compose.postgres.yaml"), {
    merge: true,
  });
  const [secret] = Object.keys(secrets);
  const { postgres, migrate, ...machines } = services;
  assert.deepEqual(Object.keys(machines), ["server", "scheduler", "worker"]);
  assert.equal(machines.worker.deploy.replicas, 3);
  assert.deepEqual(machines.server.ports, ["127.0.0.1:8787:8787"]);
  assert.equal(postgres.ports, undefined);
  assert.deepEqual(postgres.secrets, [secret]);
  assert.equal(postgres.environment.POSTGRES_PASSWORD_FILE, `/run/secrets/${secret}`);
  // While the image makes the database, its server answers at the socket alone.
  assert.ok(postgres.healthcheck.test.includes("--host=localhost"));
  for (const machine of [migrate, ...Object.values<Resource>(machines)]) {
    assert.deepEqual([machine.image, machine.user], ["${SVC_IMAGE:-svc}", "${SVC_USER:-10001:0}"]);
    assert.deepEqual([machine.read_only, machine.cap_drop], [true, ["ALL"]]);
    // What shows the variables of a container does not show the password.
    assert.deepEqual(machine.environment, {
      SVC_STORE: "postgres://svc@postgres:5432/svc",
      PGPASSWORD_FILE: `/run/secrets/${secret}`,
    });
    assert.deepEqual(machine.secrets, [secret]);
    // A volume has the owner that the folder has in the image.
    assert.deepEqual(machine.volumes.slice(0, 2), ["${SVC_WORK:-work}:/work", "home:/home/svc"]);
  }
  for (const { depends_on } of Object.values<Resource>(machines)) {
    assert.deepEqual(depends_on, { migrate: { condition: "service_completed_successfully" } });
  }
  assert.deepEqual(Object.keys(volumes), ["work", "home", "postgres"]);
});
