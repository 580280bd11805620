import { expect, it } from 'bun:test';
import { cutAudio } from '../../../src/demo/studio/audio-cut.ts';
import { A_MINOR, recordTune } from '../recording.ts';

it.each([6, 5])('a WAV with a remark of %d bytes before its sound is cut at the second', (remarkBytes) => {
  const wav = recordTune({ notes: A_MINOR, bpm: 90, seconds: 2, rate: 8_000, channels: 1 });
  const remark = Buffer.alloc(8 + 6);
  remark.write('note');
  remark.writeUInt32LE(remarkBytes, 4);
  const [format, sound] = [wav.subarray(0, 36), wav.subarray(36)];
  const pieces = [new Uint8Array(Buffer.concat([format, remark, sound]))];
  const cut = cutAudio({ pieces, contentType: 'audio/wav', bytesPerSecond: undefined }, 1);
  const lastSecond = new Uint8Array(wav.subarray(-16_000));
  expect([cut?.from, cut?.pieces.at(-1)]).toEqual([1, lastSecond]);
});
