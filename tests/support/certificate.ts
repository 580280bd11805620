/** A certificate for 127.0.0.1 that nobody trusts yet. */

import { runToEnd } from './run-to-end.ts';

const ALGORITHM = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
const SUBJECT = ['-subj', '/CN=test', '-addext', 'subjectAltName=IP:127.0.0.1'];

/** Writes `certificate.pem` and `key.pem`, and both into `both.pem`; returns the certificate. */
export async function makeCertificate(folder: string, days = 30): Promise<string> {
  const [certificate, key] = [`${folder}/certificate.pem`, `${folder}/key.pem`];
  const files = ['-keyout', key, '-out', certificate, '-days', String(days)];
  const { status, errors } = await runToEnd(['openssl', 'req', '-x509', ...ALGORITHM, ...SUBJECT, ...files]);
  if (status !== 0) throw new Error(`openssl made no certificate: ${errors}`);
  const text = await Bun.file(certificate).text();
  await Bun.write(`${folder}/both.pem`, text + (await Bun.file(key).text()));
  return text;
}
