/** A certificate for 127.0.0.1 that nobody trusts yet. It is valid until 2120, and signed with its own key. */

const BOTH = await Bun.file(new URL('certificate.pem', import.meta.url)).text();
const [CERTIFICATE = '', KEY = ''] = BOTH.split(/(?<=END CERTIFICATE-----\n)/);

/** Writes `certificate.pem` and `key.pem`, and both into `both.pem`; returns the certificate. */
export async function makeCertificate(folder: string): Promise<string> {
  const files = { certificate: CERTIFICATE, key: KEY, both: BOTH };
  for (const [name, text] of Object.entries(files)) await Bun.write(`${folder}/${name}.pem`, text);
  return CERTIFICATE;
}
