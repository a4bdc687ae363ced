// Package scheduletest runs experiments by schedules through many nights of virtual time, with a
// stand-in of the loads.
package scheduletest
