package topology

import "bytes"

// crcTable is of CRC-16/XMODEM: polynomial 0x1021, no reflection, as the Redis Cluster
// specification names it.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			high := crc & 0x8000
			crc <<= 1
			if high != 0 {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()

// SlotOf returns the cluster slot of a key: of its hash tag, the text between the first { and the
// next }, if that is not empty.
func SlotOf(key []byte) uint16 {
	if open := bytes.IndexByte(key, '{'); open >= 0 {
		if tag := bytes.IndexByte(key[open+1:], '}'); tag > 0 {
			key = key[open+1 : open+1+tag]
		}
	}
	var crc uint16
	for _, b := range key {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^b]
	}
	return crc % SlotCount
}
