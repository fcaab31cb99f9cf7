import assert from "node:assert/strict";
import { site, type TestSite, web } from "../../plugins/svc-core-web/tests/support.ts";

/** Addresses of private networks and of this machine, in all spellings, against the web tools. */

const PRIVATE =
  "127.0.0.1 0.0.0.0 10.1.2.3 100.64.0.1 169.254.169.254 172.31.255.255 192.168.1.1 198.18.0.1 " +
  "224.0.0.1 255.255.255.255";

/** Spellings of an IPv4 address that a URL may hold. */
function spellings(address: string): string[] {
  const bytes = address.split(".").map(Number) as [number, number, number, number];
  const [a, b, c, d] = bytes;
  const number = bytes.reduce((sum, byte) => sum * 256 + byte, 0);
  const hex = (value: number) => `0x${value.toString(16)}`;
  const octal = (value: number) => `0${value.toString(8)}`;
  const digits = (zero: number) =>
    address.replace(/\d/g, (digit) => String.fromCodePoint(zero + Number(digit)));
  return [
    address,
    `${address}.`,
    `${number}`,
    hex(number),
    hex(number).toUpperCase(),
    octal(number),
    `${a}.${number % 2 ** 24}`,
    `${a}.${b}.${c * 256 + d}`,
    `${a}.${hex(number % 2 ** 24)}`,
    bytes.map(hex).join("."),
    bytes.map(octal).join("."),
    bytes.map((byte) => octal(byte).padStart(9, "0")).join("."),
    `${hex(a)}.${octal(b)}.${c}.${d}`,
    digits("０".codePointAt(0)!),
    digits("𝟎".codePointAt(0)!),
    address.replaceAll(".", "。"),
    address.replaceAll(".", "．"),
    address.replace(
      /[1-9]/g,
      (digit) => String.fromCodePoint("①".codePointAt(0)! + Number(digit) - 1),
    ),
    address.replace(/\d/g, (digit) => `%3${digit}`),
    address.replaceAll(".", "%2e"),
    `${a}\u00ad.${b}.${c}.${d}`,
  ];
}

/** IPv6 addresses that stand for an IPv4 address. */
function embedded(address: string): string[] {
  const [a, b, c, d] = address.split(".").map(Number) as [number, number, number, number];
  const hex = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  return [
    `::ffff:${address}`,
    `::ffff:${hex}`,
    `0:0:0:0:0:ffff:${address}`,
    `::FFFF:${hex}`,
    `::${address}`,
    `::${hex}`,
    `::ffff:0:${address}`,
    `64:ff9b::${address}`,
    `64:ff9b::${hex}`,
    `64:ff9b:1::${hex}`,
    `2002:${hex}::`,
    `2002:${hex}::1`,
  ]
    .map((text) => `[${text}]`);
}

const IPV6 =
  "::1 :: 0:0:0:0:0:0:0:1 0000:0000:0000:0000:0000:0000:0000:0001 fc00::1 fd00:ec2::254 fe80::1 febf::1 fec0::1 " +
  "ff02::1 ff0e::1 100::1 2001::1 2001:db8::1 3fff::1 5f00::1 ::1%25lo ::1%lo fe80::1%25eth0 fe80::1%251 v1.x ::1::";

/** Host names that resolve to something else. */
const NAMES: Record<string, string[]> = {
  "localhost": ["127.0.0.1", "::1"],
  "private.test": ["10.1.2.3"],
  "first.test": ["127.0.0.1", "93.184.216.34"],
  "last.test": ["93.184.216.34", "127.0.0.1"],
  "many.test": [...Array<string>(9).fill("93.184.216.34"), "127.0.0.1"],
  "six.test": ["2606:4700::1111", "::1"],
  "mapped.test": ["::ffff:127.0.0.1"],
  "nat64.test": ["64:ff9b::7f00:1"],
  "zone.test": ["fe80::1%lo"],
  "odd.test": ["127.1"],
  "text.test": ["localhost"],
  "empty.test": [""],
  "none.test": [],
};

/** URLs that other readers take for one of another host, or that hold more than a host. */
const dressed = (port: number) => [
  `http:\\\\127.0.0.1:${port}/`,
  `http:/127.0.0.1:${port}/`,
  `http:127.0.0.1:${port}/`,
  `http:///127.0.0.1:${port}/`,
  `http://///127.0.0.1:${port}/`,
  ` http://127.0.0.1:${port}/ `,
  `\x00\x01http://127.0.0.1:${port}/`,
  `ht\ntp://127.0.0.1:${port}/`,
  `http://127.0.\t0.1:${port}/`,
  `HTTP://127.0.0.1:${port}/`,
  `http://public.test\\@127.0.0.1:${port}/`,
  `http://public.test@127.0.0.1:${port}/`,
  `http://public.test:80@127.0.0.1:${port}/`,
  `http://public.test%00@127.0.0.1:${port}/`,
  `http://public.test%2523@127.0.0.1:${port}/`,
  `http://127.0.0.1:${port}#@public.test/`,
  `http://127.0.0.1:${port}?@public.test/`,
  `http://127.0.0.1:${port}\\@public.test/`,
  `http://user:password@public.test:${port}/`,
  `http://user@public.test/`,
  `http://:password@public.test/`,
  `http://@127.0.0.1:${port}/`,
  `http://LOCALHOST:${port}/`,
  `http://localhost.:${port}/`,
  `http://ｌocalhost:${port}/`,
  `http://local\u00adhost:${port}/`,
  `https://127.0.0.1:${port}/`,
];

const OTHER_SCHEMES =
  "file:///etc/passwd ftp://127.0.0.1/ gopher://127.0.0.1:6379/_x data:text/html,x javascript:1 " +
  "blob:http://127.0.0.1/1 ws://127.0.0.1/ view-source:http://127.0.0.1/ jar:http://127.0.0.1!/ dict://127.0.0.1/ " +
  "//127.0.0.1/ 127.0.0.1 http:// http://[ http://[::1 http://127.0.0.1:99999/ http://127.0.0.1:-1/ http://127.0.0.1:x/ " +
  "http://256.1.1.1/ http://1.2.3.4.5/ http://0x100000000/ http://%/ http://a%b/ unix:/run/x http+unix://x";

const REFUSED =
  /^Error: web_fetch: .*(private network|no web address|no http or https address|user name or a password|no address)/;
const resolve = (host: string) => Promise.resolve(NAMES[host] ?? []);
const canary = () => site(() => new Response("secret"));

function urls({ port }: TestSite): string[] {
  const hosts = PRIVATE.split(" ").flatMap((
    address,
  ) => [...spellings(address), ...embedded(address)])
    .concat(IPV6.split(" ").map((address) => `[${address}]`), Object.keys(NAMES));
  return [
    ...hosts.map((host) => `http://${host}:${port}/`),
    ...dressed(port),
    ...OTHER_SCHEMES.split(" "),
    "",
  ];
}

Deno.test("addresses: none of a private network or of this machine is requested", async () => {
  await using local = canary();
  const call = web({ resolve });
  const all = urls(local);
  for (const url of all) {
    assert.match(await call("web_fetch", { url }), REFUSED, JSON.stringify(url));
  }
  assert.deepEqual(local.paths, []);
  // deno-lint-ignore no-console
  console.log(`${all.length} addresses`);
  assert.ok(all.length >= 84);
});

Deno.test("addresses: no redirect leads to one of them", async () => {
  await using local = canary();
  const places = urls(local).filter((url) => /^[\x20-\x7e]+$/.test(url) && URL.canParse(url));
  await using outer = site((_, path) => moved(places[Number(path.slice(1))]!));
  const call = web({ resolve, config: { "web.allow_private": [outer.host] } });
  for (const index of places.keys()) {
    const result = await call("web_fetch", { url: `${outer.url}/${index}` });
    // `http:/x` without a host is relative here.
    if (!/^http:[^/]|^http:\/[^/]/.test(places[index]!)) {
      assert.match(result, REFUSED, places[index]);
    }
  }
  assert.ok(outer.paths.length >= places.length);
  assert.deepEqual(local.paths, []);
});

const moved = (location: string) => new Response(null, { status: 302, headers: { location } });

Deno.test("addresses: the spellings are no straw men, since an exception for the address reaches it", async () => {
  await using local = canary();
  const call = web({ resolve, config: { "web.allow_private": ["127.0.0.1"] } });
  for (const spelling of spellings("127.0.0.1")) {
    const result = await call("web_fetch", { url: `http://${spelling}:${local.port}/` });
    assert.match(result, /secret/, spelling);
  }
});
