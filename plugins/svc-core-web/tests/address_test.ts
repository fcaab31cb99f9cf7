import fc from "fast-check";
import assert from "node:assert/strict";
import { isPublicAddress } from "../src/address.ts";

const PUBLIC = `
  1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255
  169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0
  223.255.255.255 2606:4700:4700::1111 2001:4860:4860::8888 64:ff9b::808:808 2002:808:808::1`;

const OTHER = `
  0.0.0.0 0.1.2.3 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.255.255.255 169.254.169.254
  172.16.0.0 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255
  198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
  :: ::1 ::7f00:1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:7f00:1 ::ffff:0:127.0.0.1
  fc00::1 fd12:3456::1 fe80::1 febf::1 fec0::1 ff02::1 ff0e::1 100::1 2001::1 2001:10::1 2001:20::1 2001:2::1
  2001:db8::1 3fff::1 5f00::1 4000::1 64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b:1::808:808 64:ff9b::10.0.0.1
  2002:7f00:1::1 2002:a00:1:: 2002:c0a8:101::1 2002:a9fe:a9fe::
  fe80::1%eth0 fe80::1%25eth0 8.8.8.8%1 2606:4700::1%lo 127.1 0x7f000001 2130706433 017700000001 8.8.8 8.8.8.8.
  [2606:4700::1] localhost 1.2.3.256 1.2.3.4.5 -1.2.3.4 ١.1.1.1 : ::: 1::2::3`;

Deno.test("public addresses are distinguished from special-purpose ones", () => {
  const all = (text: string) => text.trim().split(/\s+/);
  assert.deepEqual(all(PUBLIC).filter((address) => !isPublicAddress(address)), []);
  assert.deepEqual(["", " ", ...all(OTHER)].filter(isPublicAddress), []);
});

Deno.test("an IPv6 address with an embedded IPv4 address is public only if that is", () => {
  const byte = fc.integer({ min: 0, max: 255 });
  fc.assert(fc.property(fc.tuple(byte, byte, byte, byte), ([a, b, c, d]) => {
    const four = isPublicAddress(`${a}.${b}.${c}.${d}`);
    const hex = [(a << 8) | b, (c << 8) | d].map((group) => group.toString(16)).join(":");
    assert.equal(isPublicAddress(`2002:${hex}::1`), four);
    assert.equal(isPublicAddress(`64:ff9b::${hex}`), four);
    assert.equal(isPublicAddress(`64:ff9b::${a}.${b}.${c}.${d}`), four);
    assert.equal(isPublicAddress(`::ffff:${hex}`), false);
    assert.equal(isPublicAddress(`::${hex}`), false);
  }));
});

Deno.test("a text that is no address is not public", () => {
  fc.assert(fc.property(fc.string(), (text) => {
    if (!/^[\d.:a-f]+$/i.test(text)) assert.equal(isPublicAddress(text), false);
    else isPublicAddress(text);
  }));
});
